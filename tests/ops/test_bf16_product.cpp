// Products of bf16 factors: exact in fp64, so what is left is the rounding of sums in fp32.
#include "ops/bf16_product.h"

#include <ATen/Parallel.h>

#include "ops/bf16_blocks.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

struct ProductShape {
  std::int64_t m, n, k;
};

at::Tensor random_bf16(std::int64_t rows, std::int64_t columns) {
  return randn(rows, columns, 10 * rows + columns).to(at::kBFloat16);
}

// Rows contiguous, or columns.
at::Tensor laid_out(const at::Tensor& matrix, bool by_rows) {
  return by_rows ? matrix.contiguous() : matrix.t().contiguous().t();
}

at::Tensor exact_product(
    const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, float beta, float alpha) {
  return alpha * at::matmul(a.to(at::kDouble), b.to(at::kDouble)) + beta * c.to(at::kDouble);
}

TEST(Bf16Product, SumsInFp32WhateverTheLayout) {
  constexpr ProductShape kShapes[] = {{5, 7, 3}, {64, 33, 129}, {1, 40, 17}, {40, 1, 1}};
  for (const auto& [shape, a_by_rows, b_by_rows, c_by_rows] :
       cases(kShapes, {false, true}, {false, true}, {false, true})) {
    const auto& [m, n, k] = shape;
    const at::Tensor a = laid_out(random_bf16(m, k), a_by_rows);
    const at::Tensor b = laid_out(random_bf16(k, n), b_by_rows);
    const at::Tensor c = laid_out(randn(m, n, 1), c_by_rows);
    const at::Tensor wanted = exact_product(a, b, c, 0.5F, 3);
    bf16_product(a, b, c, 0.5F, 3);
    EXPECT_LT(distance(c, wanted), 1e-5 * static_cast<double>(k));
  }
}

// Sizes below, at and above those of a block, layouts of both factors, thread numbers.
TEST(Bf16Product, InBlocks) {
  if (!bf16_blocks_run()) {
    GTEST_SKIP() << "requires AVX512-BF16";
  }
  const int threads = at::get_num_threads();
  constexpr ProductShape kShapes[] = {
      {5, 7, 3}, {64, 64, 512}, {70, 130, 1031}, {257, 9, 2051}, {1, 1, 1}};
  constexpr std::pair<float, float> kFactors[] = {{0.0F, 1.0F}, {1.0F, 1.0F}, {0.5F, 3.0F}};
  for (const auto& [shape, a_by_rows, b_by_rows, factors] :
       cases(kShapes, {false, true}, {false, true}, kFactors)) {
    const auto& [m, n, k] = shape;
    const auto& [beta, alpha] = factors;
    const at::Tensor a = laid_out(random_bf16(m, k), a_by_rows);
    const at::Tensor b = laid_out(random_bf16(k, n), b_by_rows);
    const auto matrix = [](const at::Tensor& x, bool by_rows) {
      return Bf16Matrix{x.const_data_ptr<at::BFloat16>(), !by_rows, x.size(by_rows ? 1 : 0)};
    };
    const at::Tensor c = randn(m, n + 3, 1);  // its last columns are left alone
    const at::Tensor wanted = c.to(at::kDouble);
    wanted.narrow(1, 0, n).copy_(exact_product(a, b, c.narrow(1, 0, n), beta, alpha));
    at::Tensor first;
    for (const int count : {1, 3}) {
      at::set_num_threads(count);
      const at::Tensor result = c.clone();
      bf16_in_blocks(
          matrix(a, a_by_rows), matrix(b, b_by_rows), result.mutable_data_ptr<float>(), n + 3, m, n,
          k, beta, alpha);
      EXPECT_LT(distance(result, wanted), 1e-5 * static_cast<double>(k));
      EXPECT_TRUE(!first.defined() || result.equal(first));
      first = result;
    }
  }
  at::set_num_threads(threads);
}

TEST(Bf16Product, ReadsNothingFromWhatItReplaces) {
  const at::Tensor a = random_bf16(8, 16);
  const at::Tensor c = at::full({8, 8}, NAN);
  bf16_product(a, a.t(), c);
  EXPECT_TRUE(c.equal(c.t()));
}

TEST(Bf16Product, RefusesWhatItCannotRead) {
  const at::Tensor a = random_bf16(8, 8), c = randn(8, 8, 1);
  const at::Tensor scattered = random_bf16(16, 16).slice(0, 0, 16, 2).slice(1, 0, 16, 2);
  EXPECT_REFUSED(bf16_product(a.to(at::kFloat), a, c));
  EXPECT_REFUSED(bf16_product(a, a.narrow(0, 0, 4), c));
  EXPECT_REFUSED(bf16_product(scattered, a, c));
}

}  // namespace
}  // namespace abtrain::ops
