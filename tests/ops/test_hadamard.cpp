#include "ops/cpu/hadamard.h"

#include "quantize_cases.h"

namespace abtrain::ops {
namespace {

at::Tensor hadamard(const at::Tensor& x, std::int64_t size, Simd simd = best_simd()) {
  at::Tensor out = x.clone();
  simd_in_use = simd;
  for (std::int64_t begin = 0; begin < x.numel(); begin += size) {
    hadamard_block(
        out.mutable_data_ptr<float>() + begin, std::countr_zero(static_cast<std::uint64_t>(size)));
  }
  simd_in_use = best_simd();
  return out;
}

TEST(Hadamard, EqualsTheMatrixOfEachBlock) {
  for (std::int64_t size = 1; size <= 2048; size *= 2) {
    const at::Tensor x = randn(3, size, 3);
    const at::Tensor wanted = at::matmul(x.to(at::kDouble), hadamard_matrix(size));
    EXPECT_LE(distance(hadamard(x, size), wanted), 2e-6 * static_cast<double>(size)) << size;
  }
}

// Of whole numbers every sum is exact: no tolerance hides a wrong stage.
TEST(Hadamard, TwiceIsTimesItsSize) {
  for (std::int64_t size = 2; size <= 1 << 18; size *= 2) {
    const at::Tensor x = randint(-8, 9, {2 * size}, 4, at::kFloat);
    const at::Tensor once = hadamard(x, size);
    EXPECT_EQ(number(once[size]), number(x.narrow(0, size, size).sum()));
    EXPECT_FALSE(once.equal(x * size)) << size;
    EXPECT_TRUE(hadamard(once, size).equal(x * size)) << size;
  }
}

TEST(Hadamard, OneNumberGivesARowOfTheMatrix) {
  for (const std::int64_t size : {4096, 8192, 16384, 32768, 65536}) {
    for (const std::int64_t row : {std::int64_t{5}, size / 2 + 3, size - 1}) {
      const at::Tensor x = at::zeros({size});
      x[row] = 1;
      const at::Tensor out = hadamard(x, size);
      for (std::int64_t j = 0; j < size; ++j) {
        ASSERT_EQ(out.const_data_ptr<float>()[j], hadamard_entry(row, j)) << size << " " << row;
      }
    }
  }
}

TEST(Hadamard, HasTheSameBitsWithAndWithoutAvx2) {
  for (int log = 0; log <= 17; ++log) {
    const std::int64_t size = std::int64_t{1} << log;
    const at::Tensor x = randn(size, 3);
    EXPECT_TRUE(same_bits(hadamard(x, size), hadamard(x, size, Simd::Plain))) << log;
  }
}

}  // namespace
}  // namespace abtrain::ops
