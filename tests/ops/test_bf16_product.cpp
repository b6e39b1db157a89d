// Products of bf16 factors: exact in fp64, so what is left is the rounding of sums in fp32.
#include "ops/bf16_product.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ops/bf16_blocks.h"

namespace abtrain::ops {
namespace {

// Rows contiguous, or columns.
at::Tensor laid_out(const at::Tensor& matrix, bool by_rows) {
  return by_rows ? matrix.contiguous() : matrix.t().contiguous().t();
}

TEST(Bf16Product, SumsInFp32WhateverTheLayout) {
  for (const auto& [m, n, k] : {std::array{5, 7, 3}, {64, 33, 129}, {1, 40, 17}, {40, 1, 1}}) {
    for (int layout = 0; layout < 8; ++layout) {
      const at::Tensor a = laid_out(at::randn({m, k}).to(at::kBFloat16), (layout & 1) != 0);
      const at::Tensor b = laid_out(at::randn({k, n}).to(at::kBFloat16), (layout & 2) != 0);
      const at::Tensor c = laid_out(at::randn({m, n}), (layout & 4) != 0);
      const at::Tensor wanted =
          3 * at::mm(a.to(at::kDouble), b.to(at::kDouble)) + 0.5 * c.to(at::kDouble);
      bf16_product(a, b, c, 0.5F, 3);
      EXPECT_LT((c - wanted).abs().max().item<double>(), 1e-5 * k) << m << n << k << layout;
    }
  }
}

// Sizes below, at and above those of a block, layouts of both factors, thread numbers.
TEST(Bf16Product, InBlocks) {
  if (!bf16_blocks_run()) {
    GTEST_SKIP() << "requires AVX512-BF16";
  }
  const int threads = at::get_num_threads();
  for (const auto& [m, n, k] :
       {std::array{5, 7, 3}, {64, 64, 512}, {70, 130, 1031}, {257, 9, 2051}, {1, 1, 1}}) {
    for (int layout = 0; layout < 4; ++layout) {
      const at::Tensor a = at::randn({m, k}).to(at::kBFloat16);
      const at::Tensor b = at::randn({k, n}).to(at::kBFloat16);
      const at::Tensor stored_a = (layout & 1) != 0 ? a.t().contiguous() : a;
      const at::Tensor stored_b = (layout & 2) != 0 ? b.t().contiguous() : b;
      const auto matrix = [](const at::Tensor& stored, bool transposed) {
        return Bf16Matrix{stored.const_data_ptr<at::BFloat16>(), transposed, stored.size(1)};
      };
      for (const auto& [beta, alpha] : {std::pair{0.0F, 1.0F}, {1.0F, 1.0F}, {0.5F, 3.0F}}) {
        const at::Tensor c = at::randn({m, n + 3});  // its last columns are left alone
        const at::Tensor wanted = c.to(at::kDouble);
        wanted.narrow(1, 0, n).mul_(beta).add_(at::mm(a.to(at::kDouble), b.to(at::kDouble)), alpha);
        at::Tensor first;
        for (const int count : {1, 3}) {
          at::set_num_threads(count);
          const at::Tensor result = c.clone();
          bf16_in_blocks(
              matrix(stored_a, (layout & 1) != 0), matrix(stored_b, (layout & 2) != 0),
              result.mutable_data_ptr<float>(), n + 3, m, n, k, beta, alpha);
          EXPECT_LT((result - wanted).abs().max().item<double>(), 1e-5 * k)
              << m << n << k << layout;
          EXPECT_TRUE(!first.defined() || at::equal(result, first)) << m << n << k << layout;
          first = result;
        }
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(Bf16Product, ReadsNothingFromWhatItReplaces) {
  const at::Tensor a = at::randn({8, 16}).to(at::kBFloat16);
  const at::Tensor c = at::full({8, 8}, std::numeric_limits<float>::quiet_NaN());
  bf16_product(a, a.t(), c);
  EXPECT_TRUE(at::equal(c, c.t()));
}

TEST(Bf16Product, RefusesWhatItCannotRead) {
  const at::Tensor a = at::randn({8, 8}).to(at::kBFloat16);
  const at::Tensor c = at::randn({8, 8});
  const at::Tensor scattered =
      at::randn({16, 16}).to(at::kBFloat16).slice(0, 0, 16, 2).slice(1, 0, 16, 2);
  EXPECT_THROW(bf16_product(a.to(at::kFloat), a, c), std::logic_error);
  EXPECT_THROW(bf16_product(a, a.narrow(0, 0, 4), c), std::logic_error);
  EXPECT_THROW(bf16_product(scattered, a, c), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
