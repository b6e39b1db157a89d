// What wire codes leave of u: the scales they choose, which elements they send.
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "wire_cases.h"

namespace abtrain::ops {
namespace {

TEST(WireRests, RoundToTheNearestInteger) {
  for (const auto& [format, most] : {std::pair(kInt8, 127.0), std::pair(kInt4, 7.0)}) {
    const at::Tensor u = randn(10'000, 4);
    const Sent sent = send(u, format);
    for (std::int64_t c = 0; c * kWireChunk < u.numel(); ++c) {
      const std::int64_t begin = c * kWireChunk;
      const std::int64_t count = std::min(kWireChunk, u.numel() - begin);
      const double scale = scale_in(sent.record, c);
      const double exact = u.narrow(0, begin, count).abs().max().item<double>() / most;
      ASSERT_GE(scale, exact * (1 - 1e-7));
      ASSERT_LE(scale, exact * (1 + 0x1p-7));
      const at::Tensor codes = sent.value.narrow(0, begin, count).to(at::kDouble).div(scale);
      ASSERT_TRUE(codes.equal(codes.round()));
      ASSERT_LE(codes.abs().max().item<double>(), most);
      ASSERT_LE(
          sent.rest.narrow(0, begin, count).abs().max().item<double>(), scale / 2 * (1 + 1e-6));
    }
  }
}

TEST(WireRests, FitFourLevelsByLeastSquares) {
  const at::Tensor u = randn(10'000, 5).mul_(1e-3);
  const Sent sent = send(u, kInt2);
  const auto* x = u.const_data_ptr<float>();
  const auto* value = sent.value.const_data_ptr<float>();
  for (std::int64_t c = 0; c * kWireChunk < u.numel(); ++c) {
    const std::int64_t begin = c * kWireChunk;
    const std::int64_t end = std::min(begin + kWireChunk, u.numel());
    const double scale = scale_in(sent.record, c);
    const double cut =
        0.9957 * norm_of(x + begin, end - begin) / std::sqrt(static_cast<double>(end - begin));
    double products = 0;
    double squares = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double level = value[i] / scale;
      const double wanted = std::copysign(std::abs(x[i]) > cut ? 3 : 1, x[i]);
      if (std::abs(std::abs(x[i]) / cut - 1) > 1e-6) {
        ASSERT_EQ(level, wanted);
      }
      products += level * x[i];
      squares += level * level;
    }
    ASSERT_NEAR(scale, products / squares, 0.51 * 0x1p-7 * scale);
  }
}

// Of equal magnitudes, those with lower indices.
TEST(WireRests, SendTheLargest) {
  const std::vector<at::Tensor> inputs = {
      randn(9001, 6), at::randint(-6, 7, {9001}, at::detail::createCPUGenerator(7), at::kFloat),
      at::full({5000}, -2.0f),
      // The magnitudes differ in their low bits only.
      randn(5000, 8).mul_(1e-4).add_(1)};
  for (const at::Tensor& u : inputs) {
    for (const double density : {1.0 / 4096, 1.0 / 64, 0.1, 0.9999, 1.0}) {
      const WireFormat format{WireCode::Sparse, density};
      const Sent sent = send(u, format);
      const auto* x = u.const_data_ptr<float>();
      const at::Tensor wanted = at::zeros({u.numel()});
      auto* const value = wanted.mutable_data_ptr<float>();
      for (std::int64_t begin = 0, c = 0; begin < u.numel(); begin += kSparseChunk, ++c) {
        const std::int64_t count = std::min(kSparseChunk, u.numel() - begin);
        std::vector<std::int64_t> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), begin);
        std::stable_sort(order.begin(), order.end(), [x](std::int64_t a, std::int64_t b) {
          return std::abs(x[a]) > std::abs(x[b]);
        });
        const auto least = std::ceil(density * static_cast<double>(count));
        order.resize(std::min(order.size(), static_cast<std::size_t>(std::ceil(least / 4)) * 4));
        double mean = 0;
        for (const std::int64_t i : order) {
          mean += std::abs(x[i]) / static_cast<double>(order.size());
        }
        double sums[2] = {};
        int counts[2] = {};
        for (const std::int64_t i : order) {
          // Equal magnitudes are below their mean, whatever its rounding.
          const int upper = std::abs(x[i]) > mean * (1 + 1e-12);
          sums[upper] += std::abs(x[i]);
          ++counts[upper];
          value[i] = std::copysign(static_cast<float>(scale_in(sent.record, 2 * c + upper)), x[i]);
        }
        for (const int k : {0, 1}) {
          const double level = counts[k] == 0 ? 0 : sums[k] / counts[k];
          ASSERT_NEAR(scale_in(sent.record, 2 * c + k), level, 0.51 * 0x1p-7 * level);
        }
      }
      ASSERT_TRUE(sent.value.equal(wanted)) << density;
    }
  }
}

// In the 2-norm of each chunk; integers, in each element.
TEST(WireRests, AreContractions) {
  const std::int64_t numel = 3 * 4096 + 77;
  const at::Tensor one_hot = at::zeros({numel});
  const at::Tensor alternating = at::full({numel}, 0.3f);
  for (std::int64_t i = 0; i < numel; ++i) {
    if (i % 128 == 40 && i % 384 < 128) {
      one_hot[i].fill_(-2);
    }
    if (i % 2 != 0) {
      alternating[i].fill_(-0.3f);
    }
  }
  const std::vector<at::Tensor> inputs = {
      randn(numel, 9),
      randn(numel, 10).div_(randn(numel, 11)),  // Cauchy
      randn(numel, 12).mul_(1e-30),
      randn(numel, 12).mul_(1e+30),  // the squares overflow
      at::full({numel}, 0.1f),
      one_hot,
      alternating};
  for (const auto& format : kFormats) {
    for (const at::Tensor& u : inputs) {
      const Sent sent = send(u, format);
      if (format.code == WireCode::Int8 || format.code == WireCode::Int4) {
        EXPECT_TRUE(sent.rest.abs().le(u.abs()).all().item<bool>());
      }
      const std::int64_t chunk = format.code == WireCode::Sparse ? kSparseChunk : kWireChunk;
      for (std::int64_t begin = 0; begin < numel; begin += chunk) {
        const std::int64_t count = std::min(chunk, numel - begin);
        const double before = norm_of(u.const_data_ptr<float>() + begin, count);
        const double rest = norm_of(sent.rest.const_data_ptr<float>() + begin, count);
        if (before == 0) {
          ASSERT_EQ(rest, 0);
        } else {
          ASSERT_LT(rest, before) << name_of(format) << ", chunk at " << begin;
        }
      }
    }
  }
}

// Shares of the sum of squares; of integers, from the step of each chunk.
TEST(WireRests, LeaveTheKnownShareOfAGaussian) {
  const at::Tensor u = randn(1 << 20, 13);
  const auto share = [&](const WireFormat& format) {
    const Sent sent = send(u, format);
    return std::pow(
        norm_of(sent.rest.const_data_ptr<float>(), u.numel()) /
            norm_of(u.const_data_ptr<float>(), u.numel()),
        2);
  };
  const at::Tensor largest = u.abs().view({-1, kWireChunk}).amax(1).to(at::kDouble);
  const auto of_steps = [&](double most) {
    return largest.div(most).square().div(12).mean().item<double>() /
           u.to(at::kDouble).square().mean().item<double>();
  };
  EXPECT_NEAR(share(kInt8) / of_steps(127), 1, 0.05);
  EXPECT_NEAR(share(kInt4) / of_steps(7), 1, 0.05);
  EXPECT_NEAR(share(kInt2) / 0.1188, 1, 0.05);
  // Beyond t = 2.4176, with 1/64 of the elements, lies 2 t phi(t) + 1/64.
  EXPECT_NEAR(share(kSparse), 1 - 0.1194, 0.004);
}

TEST(WireRests, KeepZeros) {
  for (const auto& format : kFormats) {
    const at::Tensor u = at::zeros({10'000});
    u.narrow(0, 0, 4096).copy_(randn(4096, 14));
    u.narrow(0, 4096, 100).fill_(1e-39);  // too small for a scale
    const Sent sent = send(u, format);
    EXPECT_TRUE(sent.value.narrow(0, 4096, 5904).eq(0).all().item<bool>());
    EXPECT_TRUE(sent.rest.narrow(0, 4096, 5904).equal(u.narrow(0, 4096, 5904)));
    EXPECT_TRUE(sent.value.narrow(0, 0, 4096).ne(0).any().item<bool>());
  }
}

TEST(WireRests, ShowWhatIsNotFinite) {
  for (const auto& format : kFormats) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      const at::Tensor u = randn(9000, 15);
      u[4500].fill_(bad);
      const Sent sent = send(u, format);
      for (const at::Tensor& each : {sent.value, sent.rest}) {
        const at::Tensor finite = each.isfinite();
        EXPECT_FALSE(finite[4500].item<bool>()) << name_of(format) << bad;
        if (format.code != WireCode::Sparse) {
          EXPECT_FALSE(finite.narrow(0, 4480, 128).any().item<bool>());
        }
        // Other chunks are as they were.
        EXPECT_TRUE(finite.narrow(0, 0, 4096).all().item<bool>());
        EXPECT_TRUE(finite.narrow(0, 8192, 808).all().item<bool>());
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
