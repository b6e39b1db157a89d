#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "ops/cpu/random_words.h"
#include "ops/cpu/simd.h"
#include "ops/quantize.h"
#include "quantize_cases.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

TEST(RandomWords, AreThoseOfTheStream) {
  for (const Simd simd : {Simd::Plain, best_simd()}) {
    for (const std::int64_t first : {0LL, 5LL, 0xFFFFFFFCLL}) {
      for (const std::int64_t blocks : {0, 1, 7, 8, 9, 40}) {
        std::vector<std::uint32_t> words(static_cast<std::size_t>(4 * blocks));
        const auto stream = kernels::random_stream(77, RandomPurpose::Rounding, 5, 6);
        simd_in_use = simd;
        random_words(stream, first, blocks, words.data());
        for (std::int64_t i = 0; i < blocks; ++i) {
          const auto place = static_cast<std::uint64_t>(first + i);
          std::uint32_t wanted[] = {
              static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), 5, 6};
          kernels::philox(stream.key, wanted);
          for (std::size_t w = 0; w < 4; ++w) {
            ASSERT_EQ(words[static_cast<std::size_t>(4 * i) + w], wanted[w]);
          }
        }
      }
    }
  }
}

TEST(BlockNorms, EqualFloat64) {
  for (const std::int64_t block : {2, 16, 128, 1024, 8192, 1 << 21}) {
    for (const std::int64_t numel : {1, 1023, 1025, 20001, 1'200'001}) {
      const at::Tensor u = randn(numel, 3);
      const at::Tensor all = at::zeros({padded(numel, block)}, at::kDouble);
      all.narrow(0, 0, numel).copy_(u);
      const at::Tensor wanted = all.view({-1, block}).square().sum(1).sqrt();
      const at::Tensor norms = norms_of(u, block);
      EXPECT_TRUE(norms.to(at::kDouble).allclose(wanted, 1e-6, 0)) << block;
      simd_in_use = Simd::Plain;
      const at::Tensor plain = norms_of(u, block);
      simd_in_use = best_simd();
      EXPECT_TRUE(same_bits(norms, plain)) << block << " " << numel;
    }
  }
}

TEST(BlockNorms, AreInfiniteWhereANumberIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const at::Tensor u = randn(3000, 3);
    u[1500] = bad;
    const at::Tensor norms = norms_of(u, 1024);
    EXPECT_TRUE(std::isfinite(norms[0].item<float>()));
    EXPECT_EQ(norms[1].item<float>(), std::numeric_limits<float>::infinity());
  }
}

TEST(SumCodes, ClampsTheSumOnceAndCountsIt) {
  for (const int n : {1, 2, 7, 40, 4096}) {
    const std::int64_t bytes = n > 100 ? 64 : 1344;
    at::Generator generator = at::detail::createCPUGenerator(9);
    // Of many members most sums are beyond, so that both ends are met.
    const at::Tensor in = at::randint(0, 256, {n * bytes}, generator, at::kLong).to(at::kByte);
    in.view({n, bytes}).narrow(1, 0, 5).fill_(0x11);
    in.view({n, bytes}).narrow(1, 5, 5).fill_(0xFF);
    in.view({n, bytes}).narrow(1, 10, 5).fill_(0x88);
    const at::Tensor out = at::empty({bytes + kernels::kTailBytes}, at::kByte);
    sum_codes(in, n, out);
    const auto* codes = in.const_data_ptr<std::uint8_t>();
    const auto* got = out.const_data_ptr<std::uint8_t>();
    std::uint32_t clamped = 0;
    for (std::int64_t i = 0; i < bytes; ++i) {
      for (const int shift : {0, 4}) {
        int sum = 0;
        for (int b = 0; b < n; ++b) {
          sum += (codes[b * bytes + i] >> shift & 15) - 8;
        }
        const int within = std::clamp(sum, -7, 7);
        clamped += sum != within;
        ASSERT_EQ(got[i] >> shift & 15, within + 8) << n << " " << i;
      }
    }
    std::uint32_t count = 0;
    std::memcpy(&count, got + bytes, sizeof(count));
    EXPECT_EQ(count, clamped);
    EXPECT_GT(clamped, 0u);
    for (std::int64_t i = bytes + 4; i < out.numel(); ++i) {
      EXPECT_EQ(got[i], 0);
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
