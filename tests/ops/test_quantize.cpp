#include "ops/quantize.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ops/cpu/simd.h"
#include "ops/quantize_job.h"
#include "quantize_cases.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

// Codes one by one, however they lie.
std::vector<int> unpacked(const at::Tensor& codes, Lanes lanes) {
  std::vector<int> all;
  for (std::int64_t i = 0; i < codes.numel(); ++i) {
    const auto lane = codes[i].item<int>();
    if (lanes == Lanes::Byte) {
      all.push_back(lane);
    } else {
      const int bits = lanes == Lanes::Nibble ? 4 : 16;
      all.push_back(lane & ((1 << bits) - 1));
      all.push_back(lane >> bits);
    }
  }
  return all;
}

const Case kCases[] = {{2, true, Lanes::Byte},    {4, true, Lanes::Nibble},
                       {8, false, Lanes::Pair},   {16, true, Lanes::Byte},
                       {64, true, Lanes::Pair},   {128, true, Lanes::Nibble},
                       {1024, true, Lanes::Byte}, {1024, false, Lanes::Nibble},
                       {4096, true, Lanes::Byte}, {8192, true, Lanes::Pair}};

// All of it from its definition, in float64 and with the matrix's entries.
TEST(Quantize, EqualsItsDefinition) {
  for (const Case& c : kCases) {
    if (c.block > 1024) {
      continue;
    }
    const Coding coding = coding_of(c);
    const std::int64_t numel = 2500;
    const std::int64_t all = padded(numel, c.block);
    const at::Tensor u = randn(numel, 3);
    const Quantized q = quantize_and_back(u, coding);
    const std::vector<int> got = unpacked(q.codes, c.lanes);
    ASSERT_EQ(static_cast<std::int64_t>(got.size()), all);

    const auto block_of = [&](RandomPurpose purpose, std::int64_t block, std::uint32_t stream) {
      std::array<std::uint32_t, 4> words = {
          static_cast<std::uint32_t>(block), 0, coding.step, stream};
      kernels::philox(kernels::random_stream(coding.seed, purpose, 0, 0).key, words.data());
      return words;
    };
    std::vector<double> x(static_cast<std::size_t>(all), 0.0);
    std::vector<int> sign(x.size(), 1), half(x.size());
    for (std::int64_t i = 0; i < all; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const std::int64_t place = i + coding.first;
      if (c.rotate) {
        const auto words = block_of(RandomPurpose::Signs, place / 128, coding.signs);
        sign[k] =
            (words[static_cast<std::size_t>(place % 128 / 32)] >> (place % 32) & 1) != 0 ? -1 : 1;
      }
      const auto words = block_of(RandomPurpose::Rounding, place / 8, coding.rounding);
      half[k] = static_cast<int>(
          words[static_cast<std::size_t>(place % 8 / 2)] >> (place % 2 * 16) & 65535u);
      x[k] = i < numel ? sign[k] * u[i].item<double>() : 0;
    }
    const auto rotated = [&](const std::vector<double>& in) {
      std::vector<double> out(in.size(), 0.0);
      for (std::int64_t i = 0; i < all; ++i) {
        const std::int64_t begin = i / c.block * c.block;
        for (std::int64_t j = begin; j < begin + c.block; ++j) {
          out[static_cast<std::size_t>(i)] +=
              c.rotate ? hadamard_entry(i - begin, j - begin) * in[static_cast<std::size_t>(j)] /
                             std::sqrt(static_cast<double>(c.block))
                       : (i == j ? in[static_cast<std::size_t>(j)] : 0);
        }
      }
      return out;
    };
    const std::vector<double> r = rotated(x);
    std::vector<double> stands_for(x.size());
    int different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double range = q.ranges[static_cast<std::int64_t>(i) / c.block].item<double>();
      const double step = range / std::sqrt(static_cast<double>(c.block)) / coding.limit;
      const double within =
          std::clamp(step > 0 ? r[i] / step : 0.0, -double{coding.limit}, double{coding.limit});
      const int k = static_cast<int>(std::floor(within + coding.offset + half[i] / 65536.0));
      different += k != got[i];
      // 2^-16 of a code, and the transform's rounding, may turn a rounding.
      ASSERT_NEAR(got[i], within + coding.offset, 1.0001) << c.block;
      stands_for[i] = (got[i] - double{coding.offset}) * step;
    }
    EXPECT_LE(different, 3) << c.block;
    const std::vector<double> back = rotated(stands_for);
    for (std::int64_t i = 0; i < numel; ++i) {
      const auto k = static_cast<std::size_t>(i);
      ASSERT_NEAR(q.rest[i].item<double>(), u[i].item<double>() - sign[k] * back[k], 2e-5)
          << c.block << " " << i;
    }
    // And the way back says the same.
    EXPECT_LE(u.sub(q.value).sub(q.rest).abs().max().item<double>(), 2e-6 * 6) << c.block;
  }
}

TEST(Quantize, HasTheSameBitsInEveryForm) {
  const int threads = at::get_num_threads();
  for (const Case& c : kCases) {
    const Coding coding = coding_of(c);
    for (const std::int64_t numel : {1, 1023, 1025, 70001}) {
      const at::Tensor u = randn(numel, 3);
      const at::Tensor ranges = norms_of(u, c.block).mul(kRange);
      const auto run = [&](Simd simd) {
        std::vector<at::Tensor> results = {
            u.clone(), code_buffer(numel, coding), at::empty({numel})};
        simd_in_use = simd;
        work_on_host(quantize_job(results[0], ranges, coding, true, results[1]));
        work_on_host(dequantize_job({results[1], coding.offset, 3}, ranges, coding, results[2]));
        return results;
      };
      at::set_num_threads(1);
      const auto plain = run(Simd::Plain);
      const auto best = run(best_simd());
      at::set_num_threads(3);
      const auto parallel = run(best_simd());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        EXPECT_TRUE(same_bits(plain[i], best[i])) << c.block << " " << numel;
        EXPECT_TRUE(same_bits(plain[i], parallel[i]));
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(Quantize, RoundsWithoutABias) {
  // One number between two codes, coded 16,384 times.
  const Coding coding = coding_of({128, false, Lanes::Byte});
  for (const float between : {0.0F, 0.03F, 0.5F, 0.8F}) {
    const std::int64_t numel = 16384;
    const at::Tensor u = at::full({numel}, between);
    // A step of 1: the codes are at -7.5, -6.5, ...
    const at::Tensor ranges = at::full({numel / 128}, 7.5F * std::sqrt(128.0F));
    const at::Tensor codes = code_buffer(numel, coding);
    quantize_blocks(u, ranges, coding, false, codes);
    EXPECT_TRUE(u.eq(between).all().item<bool>()) << "no residual was wanted";
    const double mean = codes.to(at::kDouble).mean().item<double>() - 7.5;
    EXPECT_NEAR(mean, between, 4 * 0.5 / 128) << between;
  }
}

TEST(Quantize, ClampsToItsLimits) {
  const Coding coding = coding_of({128, false, Lanes::Nibble});
  const at::Tensor u = randn(128, 3).mul(100);
  const at::Tensor before = u.clone();
  const at::Tensor ranges = at::full({1}, 7 * std::sqrt(128.0F));  // a step of 1
  const at::Tensor codes = code_buffer(128, coding);
  quantize_blocks(u, ranges, coding, true, codes);
  for (const int k : unpacked(codes, Lanes::Nibble)) {
    EXPECT_TRUE(1 <= k && k <= 15) << k;
  }
  // The rest is in the residual.
  const at::Tensor sent = before.sub(u);
  EXPECT_LE(sent.abs().max().item<float>(), 7.0001F);
  EXPECT_GE(sent.abs().max().item<float>(), 6.9999F);
}

TEST(Quantize, ZeroAndTinyBlocksStayAsTheyAre) {
  for (const Lanes lanes : {Lanes::Byte, Lanes::Nibble}) {
    const Coding coding = coding_of({128, true, lanes});
    const at::Tensor u = at::zeros({300});
    u.narrow(0, 128, 128).fill_(1e-30F);
    const Quantized q = quantize_and_back(u, coding);
    EXPECT_TRUE(q.rest.equal(u));
    EXPECT_TRUE(q.value.eq(0).all().item<bool>());
  }
}

TEST(Quantize, AnInfiniteRangeShowsInTheEstimateAndLeavesNothing) {
  const Coding coding = coding_of({128, true, Lanes::Byte});
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor u = randn(300, 3);
    u[130] = bad;
    const Quantized q = quantize_and_back(u, coding);
    EXPECT_TRUE(q.value.narrow(0, 128, 128).isnan().all().item<bool>());
    EXPECT_TRUE(q.value.narrow(0, 0, 128).isfinite().all().item<bool>());
    EXPECT_TRUE(q.value.narrow(0, 256, 44).isfinite().all().item<bool>());
    EXPECT_TRUE(q.rest.narrow(0, 128, 128).eq(0).all().item<bool>());
    EXPECT_TRUE(q.rest.isfinite().all().item<bool>());
  }
}

// Four workers' codes added as integers are the codes of the sum.
TEST(Quantize, CodesAdd) {
  for (const Lanes lanes : {Lanes::Byte, Lanes::Pair}) {
    Coding coding = coding_of({64, true, lanes});
    const std::int64_t numel = 1000;
    const int n = lanes == Lanes::Byte ? 17 : 40;
    const at::Tensor ranges = at::full({padded(numel, 64) / 64}, 3.3F * 9);
    at::Tensor sum = code_buffer(numel, coding);
    at::Tensor mean = at::zeros({numel}, at::kDouble);
    for (int i = 0; i < n; ++i) {
      const at::Tensor u = randn(numel, 60 + i).mul(2);
      const at::Tensor left = u.clone();
      const at::Tensor codes = code_buffer(numel, coding);
      coding.rounding = static_cast<std::uint32_t>(i);
      quantize_blocks(left, ranges, coding, true, codes);
      sum += codes;
      mean += u.to(at::kDouble).sub(left.to(at::kDouble)).div(n);
    }
    const at::Tensor out = at::empty({numel});
    const auto members = static_cast<float>(n);
    dequantize_blocks({sum, 7.5F * members, members}, ranges, coding, out);
    EXPECT_LE(out.to(at::kDouble).sub(mean).abs().max().item<double>(), 1e-5);
  }
}

TEST(QuantizeErrors, RefuseWhatDoesNotFit) {
  const at::Tensor u = randn(300, 3);
  const at::Tensor ranges = norms_of(u, 128);
  Coding coding = coding_of({128, true, Lanes::Byte});
  const at::Tensor codes = code_buffer(300, coding);
  EXPECT_NO_THROW(quantize_blocks(u, ranges, coding, true, codes));
  EXPECT_THROW(quantize_blocks(u, ranges.narrow(0, 0, 2), coding, true, codes), std::logic_error);
  EXPECT_THROW(quantize_blocks(u, ranges, coding, true, codes.narrow(0, 0, 300)), std::logic_error);
  coding.first = 64;
  EXPECT_THROW(quantize_blocks(u, ranges, coding, true, codes), std::logic_error);
  coding.first = 0;
  coding.offset = 8;
  EXPECT_THROW(quantize_blocks(u, ranges, coding, true, codes), std::logic_error);
  EXPECT_THROW(block_norms(u, 100, ranges), std::logic_error);
  EXPECT_THROW(sum_codes(codes, 3, codes), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
