#include "methods/ab/basis_change.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "methods/ab_layers.h"

namespace abtrain::methods {
namespace {

using nn::Factor;

at::Tensor random_matrix(std::int64_t rows, std::int64_t columns) {
  return at::randn({rows, columns}, at::kDouble);
}

// The gradient of the weight G gives those of any factors: G B^T and A^T G.
void expect_carried(const linalg::LowRankPair& before, const linalg::LowRankPair& after) {
  nn::Weight w({30, 20});
  const bool has_grid = before.a.dim() == 4;
  w.set_grid(has_grid ? before.a.size(0) : 1);
  w.dense = random_matrix(30, 20);
  const at::Tensor g = w.matrix();
  const AbLayer change = layer_of(w, w.grid() * before.a.size(-1), before, after);
  EXPECT_LT(
      relative_distance(
          carry_gradient(at::matmul(g, before.b.mT()), Factor::A, change, false),
          at::matmul(g, after.b.mT())),
      1e-10);
  EXPECT_LT(
      relative_distance(
          carry_gradient(at::matmul(before.a.mT(), g), Factor::B, change, false),
          at::matmul(after.a.mT(), g)),
      1e-10);
}

TEST(BasisChange, AGradientIsThatOfTheNewFactor) {
  constexpr std::int64_t kRank = 5;
  const linalg::LowRankPair before = {random_matrix(30, kRank), random_matrix(kRank, 20)};
  expect_carried(before, balanced(at::matmul(before.a, before.b), kRank));
}

// Every block of a grid has its own basis.
TEST(BasisChange, AGradientIsThatOfTheNewFactorOfEachBlock) {
  constexpr std::int64_t kGrid = 2, kRank = 3;
  const linalg::LowRankPair before = {
      at::randn({kGrid, kGrid, 15, kRank}, at::kDouble),
      at::randn({kGrid, kGrid, kRank, 10}, at::kDouble)};
  linalg::LowRankPair after = {at::empty_like(before.a), at::empty_like(before.b)};
  for (std::int64_t b = 0; b < kGrid; ++b) {
    for (std::int64_t c = 0; c < kGrid; ++c) {
      const auto block = balanced(at::matmul(before.a[b][c], before.b[b][c]), kRank);
      after.a[b][c].copy_(block.a);
      after.b[b][c].copy_(block.b);
    }
  }
  expect_carried(before, after);
}

// The components that a cut leaves keep their gradients.
TEST(BasisChange, ACutDropsComponents) {
  const linalg::LowRankPair before =
      balanced(at::matmul(random_matrix(30, 6), random_matrix(6, 20)), 6);
  expect_carried(before, {before.a.narrow(1, 0, 4), before.b.narrow(0, 0, 4)});
}

TEST(BasisChange, ADenseGradientIsProjected) {
  nn::Weight w({30, 20});
  const at::Tensor g = random_matrix(30, 20);
  const linalg::LowRankPair after = balanced(random_matrix(30, 20), 4);
  const AbLayer change = layer_of(w, 0, {}, after);
  EXPECT_LT(
      relative_distance(carry_gradient(g, Factor::A, change, false), at::matmul(g, after.b.t())),
      1e-12);
  EXPECT_LT(
      relative_distance(carry_gradient(g, Factor::B, change, false), at::matmul(after.a.t(), g)),
      1e-12);
  // E (sum_j g_ij b_kj)^2 = sum_j E g_ij^2 b_kj^2 for independent components.
  const at::Tensor squares = g.square();
  EXPECT_LT(
      relative_distance(
          carry_gradient(squares, Factor::A, change, true),
          at::matmul(squares, after.b.square().t())),
      1e-12);
}

// If the new factors only scale the old ones, A' = A D and B' = D^-1 B, each
// gradient is scaled too, and its square by the square of that: exactly.
TEST(BasisChange, SquaredGradientsOfScaledFactors) {
  constexpr std::int64_t kRank = 4;
  nn::Weight w({30, 20});
  const linalg::LowRankPair after = balanced(random_matrix(30, 20), kRank);
  const at::Tensor d = at::rand({kRank}, at::kDouble) + 0.5;
  const linalg::LowRankPair before = {after.a / d, after.b * d.unsqueeze(1)};
  const AbLayer change = layer_of(w, kRank, before, after);
  const at::Tensor a = random_matrix(30, kRank).square();
  const at::Tensor b = random_matrix(kRank, 20).square();
  EXPECT_LT(relative_distance(carry_gradient(a, Factor::A, change, true), a / d.square()), 1e-10);
  EXPECT_LT(
      relative_distance(carry_gradient(b, Factor::B, change, true), b * d.square().unsqueeze(1)),
      1e-10);
}

}  // namespace
}  // namespace abtrain::methods
