#include "ops/gram_schmidt.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "tensors.h"

namespace abtrain::ops {
namespace {

// More rows than a panel has are handled in panels, as on a GPU.
at::Tensor orthonormal(const at::Tensor& rows) {
  const at::Tensor flat = rows.contiguous().clone().reshape({-1});
  const std::vector<RowSet> sets = {{0, rows.size(0), rows.size(1)}};
  rows.size(0) > kGramPanel ? gram_schmidt_in_panels(flat, sets) : gram_schmidt(flat, sets);
  return flat.view(rows.sizes());
}

void check_orthonormal(const at::Tensor& rows) {
  const at::Tensor wide = rows.to(at::kDouble);
  const at::Tensor gram = at::matmul(wide, wide.t());
  EXPECT_LT(gram.sub(at::eye(rows.size(0), at::kDouble)).abs().max().item<double>(), 1e-6)
      << rows.sizes();
}

TEST(GramSchmidt, SpansWhatTheRowsDid) {
  for (const auto& [rows, length] :
       {std::pair<std::int64_t, std::int64_t>{1, 1},
        {1, 300},
        {4, 4},
        {3, 127},
        {4, 128},
        {7, 1001},
        {9, 500},
        {20, 20},
        {40, 1001}}) {
    const at::Tensor in = randn(rows, length, 1);
    const at::Tensor out = orthonormal(in);
    check_orthonormal(out);
    // Row k lies in the span of the first k + 1, on the side of row k.
    for (std::int64_t k = 0; k < rows; ++k) {
      const at::Tensor span = out.narrow(0, 0, k + 1).to(at::kDouble);
      const at::Tensor row = in[k].to(at::kDouble);
      const at::Tensor inside = at::matmul(span.t(), at::matmul(span, row));
      EXPECT_LT(row.sub(inside).norm().item<double>(), 1e-5 * row.norm().item<double>());
      EXPECT_GT(at::matmul(span[k], row).item<double>(), 0);
    }
  }
}

TEST(GramSchmidt, HoldsWhereRowsAreNearlyDependent) {
  for (const auto& [rows, apart] : {std::pair{4, 1e-3}, {4, 1e-5}, {30, 1e-5}}) {
    const at::Tensor in = randn(1, 500, 1).expand({rows, 500}).contiguous();
    in.add_(randn(rows, 500, 2), apart);
    check_orthonormal(orthonormal(in));
  }
}

TEST(GramSchmidt, FindsADirectionForRowsThatDepend) {
  at::Tensor narrow = at::zeros({16, 1000});  // few columns hold anything
  narrow.narrow(1, 0, 4).copy_(randn(16, 4, 3));
  const at::Tensor row = randn(1, 40, 3);
  for (const at::Tensor& rows :
       {narrow, at::matmul(randn(30, 3, 1), randn(3, 50, 2)),  // of rank 3, in several panels
        at::matmul(randn(30, 3, 1), randn(3, 30, 2)), at::full({8, 8}, 1.0f),
        at::cat({row, row, row.mul(-2)}), at::cat({at::zeros({1, 40}), row})}) {
    check_orthonormal(orthonormal(rows));
  }
  // Zeros, and odd rows among others, in one panel and in several.
  for (const std::int64_t count : {3, 20}) {
    check_orthonormal(orthonormal(at::zeros({count, 40})));
    EXPECT_TRUE(orthonormal(at::zeros({count, count})).equal(at::eye(count)));
    at::Tensor odd = randn(count, 40, 4);
    odd[count - 2][7] = std::numeric_limits<float>::quiet_NaN();
    odd[count - 1][0] = std::numeric_limits<float>::infinity();
    check_orthonormal(orthonormal(odd));
  }
}

TEST(GramSchmidt, DoesNotDependOnTheSizeOfTheNumbers) {
  const at::Tensor in = randn(4, 200, 5);
  // A power of two: the very bits.
  EXPECT_TRUE(orthonormal(in.mul(0x1p-60f)).equal(orthonormal(in)));
  EXPECT_TRUE(orthonormal(in.mul(0x1p60f)).equal(orthonormal(in)));
}

TEST(GramSchmidt, TouchesOnlyItsMatrices) {
  const at::Tensor flat = randn(1, 1000, 6).reshape({-1});
  const at::Tensor before = flat.clone();
  gram_schmidt(flat, {{10, 2, 100}, {500, 3, 50}, {700, 0, 50}});
  check_orthonormal(flat.narrow(0, 10, 200).view({2, 100}));
  check_orthonormal(flat.narrow(0, 500, 150).view({3, 50}));
  EXPECT_TRUE(flat.narrow(0, 10, 200)
                  .equal(orthonormal(before.narrow(0, 10, 200).view({2, 100})).reshape({-1})));
  EXPECT_TRUE(flat.narrow(0, 0, 10).equal(before.narrow(0, 0, 10)));
  EXPECT_TRUE(flat.narrow(0, 210, 290).equal(before.narrow(0, 210, 290)));
  EXPECT_TRUE(flat.narrow(0, 650, 350).equal(before.narrow(0, 650, 350)));
}

TEST(GramSchmidtErrors, RefuseMoreRowsThanFit) {
  const at::Tensor flat = at::zeros({100});
  EXPECT_THROW(gram_schmidt(flat, {{0, 6, 5}}), std::logic_error);
  EXPECT_THROW(gram_schmidt(flat, {{60, 2, 25}}), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
