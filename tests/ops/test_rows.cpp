#include "ops/rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensors.h"

namespace abtrain::ops {
namespace {

std::vector<RowTable::Tensor> two_matrices() {
  return {{0, 5, 300, 2}, {1600, 6, 7, 3}};
}

TEST(Rows, NormsAreThoseOfFloat64) {
  RowTable table(two_matrices());
  const at::Tensor u = randn(table.end(), 1);
  const at::Tensor norms = at::empty({table.rows()});
  row_norms(u, table, norms);
  for (int row = 0; row < 11; ++row) {
    const at::Tensor part =
        row < 5 ? u.narrow(0, 300 * row, 300) : u.narrow(0, 1600 + 7 * (row - 5), 7);
    const auto wanted = part.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(norms[row].item<double>(), wanted, 1e-6 * wanted) << row;
  }
}

TEST(Rows, TheLargestAreChosenTheLowerOfTwoEqualOnes) {
  RowTable table(two_matrices());
  const at::Tensor chosen = at::empty({5}, at::kInt);
  choose_rows(at::tensor({1., 7., 3., 7., 7., 0., 0., 2., 0., 0., 0.}, at::kFloat), table, chosen);
  EXPECT_TRUE(chosen.equal(at::tensor({1, 3, 2, 0, 1}, at::kInt)));
  // What is not finite is never left out.
  choose_rows(
      at::tensor(
          {1., 7., double(INFINITY), 7., double(NAN), 0., 0., 2., 0., 1., double(NAN)}, at::kFloat),
      table, chosen);
  EXPECT_TRUE(chosen.equal(at::tensor({4, 2, 5, 2, 4}, at::kInt)));
}

TEST(Rows, WhatIsSentIsTakenAway) {
  RowTable table(two_matrices());
  const at::Tensor chosen = at::tensor({4, 0, 5, 1, 2}, at::kInt);
  const at::Tensor x = randn(table.end(), 2);
  const at::Tensor u = x.clone();
  const at::Tensor wire = at::empty({table.values()}, at::kHalf);
  send_rows(u, table, chosen, 4, wire);
  ASSERT_EQ(wire.numel(), 2 * 300 + 3 * 7);
  EXPECT_TRUE(wire.narrow(0, 0, 300).equal(x.narrow(0, 1200, 300).div(4).to(at::kHalf)));
  EXPECT_TRUE(wire.narrow(0, 300, 300).equal(x.narrow(0, 0, 300).div(4).to(at::kHalf)));
  EXPECT_TRUE(wire.narrow(0, 600, 7).equal(x.narrow(0, 1635, 7).div(4).to(at::kHalf)));

  const at::Tensor base = randn(table.end(), 3);
  const at::Tensor sum = base.clone();
  add_rows(wire, table, chosen, sum);
  EXPECT_TRUE(sum.narrow(0, 300, 900).equal(base.narrow(0, 300, 900)));
  EXPECT_TRUE(sum.narrow(0, 1500, 107).equal(base.narrow(0, 1500, 107)));
  EXPECT_TRUE(sum.narrow(0, 0, 300).equal(
      base.narrow(0, 0, 300).add(wire.narrow(0, 300, 300).to(at::kFloat))));
  // Nothing is lost: u + 4 * wire is what was there.
  const at::Tensor sent = at::zeros({table.end()});
  add_rows(wire, table, chosen, sent);
  EXPECT_TRUE(u.to(at::kDouble).add(sent.to(at::kDouble), 4).equal(x.to(at::kDouble)));
  EXPECT_LT(u.narrow(0, 0, 300).abs().max().item<float>(), 4e-3);
}

TEST(Rows, RefuseWhatDoesNotFit) {
  EXPECT_THROW(RowTable({{0, 5, 3, 6}}), std::logic_error);
  EXPECT_THROW(RowTable({{0, 5, 3, 0}}), std::logic_error);
  EXPECT_THROW(RowTable({{0, 5, 3, 1}, {14, 1, 1, 1}}), std::logic_error);
  RowTable table(two_matrices());
  EXPECT_THROW(row_norms(at::zeros({1641}), table, at::zeros({11})), std::logic_error);
  EXPECT_THROW(choose_rows(at::zeros({11}), table, at::zeros({5})), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
