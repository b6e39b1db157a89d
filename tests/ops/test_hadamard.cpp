#include "ops/cpu/hadamard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <bit>

#include "ops/cpu/simd.h"
#include "quantize_cases.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

at::Tensor matrix(std::int64_t size) {
  at::Tensor h = at::empty({size, size}, at::kDouble);
  auto* out = h.data_ptr<double>();
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      *out++ = hadamard_entry(i, j);
    }
  }
  return h;
}

void hadamard(const at::Tensor& x, std::int64_t size) {
  for (std::int64_t begin = 0; begin < x.numel(); begin += size) {
    hadamard_block(
        x.mutable_data_ptr<float>() + begin, std::countr_zero(static_cast<std::uint64_t>(size)));
  }
}

TEST(Hadamard, EqualsTheMatrixOfEachBlock) {
  for (std::int64_t size = 1; size <= 2048; size *= 2) {
    for (const std::int64_t blocks : {0, 1, 3}) {
      const at::Tensor x = randn(blocks * size, 3);
      const at::Tensor wanted = at::matmul(x.view({blocks, size}).to(at::kDouble), matrix(size));
      hadamard(x, size);
      const at::Tensor error = x.view({blocks, size}).to(at::kDouble).sub(wanted).abs();
      if (blocks > 0) {
        EXPECT_LE(error.max().item<double>(), 2e-6 * size) << size;
      }
    }
  }
}

// Of whole numbers every sum is exact: no tolerance hides a wrong stage.
TEST(Hadamard, TwiceIsTimesItsSize) {
  for (std::int64_t size = 2; size <= 1 << 18; size *= 2) {
    at::Generator generator = at::detail::createCPUGenerator(4);
    const at::Tensor x = at::randint(-8, 9, {2 * size}, generator, at::kLong).to(at::kFloat);
    const at::Tensor wanted = x.mul(static_cast<double>(size));
    hadamard(x, size);
    EXPECT_EQ(x[size].item<float>(), wanted.narrow(0, size, size).sum().item<float>() / size);
    EXPECT_FALSE(x.equal(wanted)) << size;
    hadamard(x, size);
    EXPECT_TRUE(x.equal(wanted)) << size;
  }
}

TEST(Hadamard, OneNumberGivesARowOfTheMatrix) {
  for (const std::int64_t size : {4096, 8192, 16384, 32768, 65536}) {
    for (const std::int64_t row : {std::int64_t{5}, size / 2 + 3, size - 1}) {
      const at::Tensor x = at::zeros({size});
      x[row] = 1;
      hadamard(x, size);
      const auto* values = x.const_data_ptr<float>();
      for (std::int64_t j = 0; j < size; ++j) {
        ASSERT_EQ(values[j], hadamard_entry(row, j)) << size << " " << row << " " << j;
      }
    }
  }
}

TEST(Hadamard, HasTheSameBitsWithAndWithoutAvx2) {
  if (best_simd() == Simd::Plain) {
    GTEST_SKIP() << "this processor has no AVX2";
  }
  for (int log = 0; log <= 17; ++log) {
    const at::Tensor a = randn(std::int64_t{1} << log, 3);
    const at::Tensor b = a.clone();
    simd_in_use = Simd::Plain;
    hadamard_block(a.mutable_data_ptr<float>(), log);
    simd_in_use = Simd::Avx2;
    hadamard_block(b.mutable_data_ptr<float>(), log);
    EXPECT_TRUE(same_bits(a, b)) << log;
  }
}

}  // namespace
}  // namespace abtrain::ops
