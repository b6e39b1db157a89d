// Newton-Schulz against the polynomial in float64 and what it is for: singular
// values near 1.
#include "optim/newton_schulz.h"

#include <gtest/gtest.h>

#include <cmath>

#include "orthogonalized.h"

namespace abtrain::optim {
namespace {

class NewtonSchulzShapes : public ::testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {
};

// A square random matrix has singular values near 0: a multiple of I is added.
at::Tensor random_matrix(std::pair<std::int64_t, std::int64_t> shape, std::uint64_t seed) {
  at::Tensor matrix =
      at::randn({shape.first, shape.second}, at::detail::createCPUGenerator(seed), at::kFloat);
  if (shape.first == shape.second) {
    matrix.diagonal().add_(2 * std::sqrt(static_cast<double>(shape.first)));
  }
  return matrix;
}

void expect_near_orthogonal(const at::Tensor& matrix) {
  const at::Tensor values = at::linalg_svdvals(matrix.to(at::kDouble));
  EXPECT_GT(values.min().item<double>(), 0.6);
  EXPECT_LT(values.max().item<double>(), 1.3);
}

double relative_error(const at::Tensor& got, const at::Tensor& wanted) {
  return ((got.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
}

TEST_P(NewtonSchulzShapes, FollowThePolynomialInFloat64) {
  const at::Tensor a = random_matrix(GetParam(), 1);
  const at::Tensor b = random_matrix(GetParam(), 2);
  for (const auto& [scale, steps] : {std::pair{1.0, 5}, {2.5, 5}, {1.0, 2}}) {
    NewtonSchulz newton_schulz(steps);
    const std::vector<at::Tensor> exact = {a.clone(), b.clone()};
    newton_schulz.one_by_one(exact, scale);
    const at::Tensor wanted = testing::orthogonalized(a, steps) * scale;
    EXPECT_LT(relative_error(exact[0], wanted), 1e-5);
    EXPECT_LT(relative_error(exact[1], testing::orthogonalized(b, steps) * scale), 1e-5);
    const std::vector<at::Tensor> many = {a.clone(), b.clone()};
    newton_schulz.together(many, scale, at::kFloat);
    EXPECT_LT(relative_error(many[0], wanted), 1e-5);
    EXPECT_LT(relative_error(many[1], testing::orthogonalized(b, steps) * scale), 1e-5);
    for (const bool batched : {true, false}) {
      const std::vector<at::Tensor> rounded = {a.clone(), b.clone(), a * -4};
      batched ? newton_schulz.together(rounded, scale, at::kBFloat16)
              : newton_schulz.in_bf16(rounded, scale);
      EXPECT_LT(relative_error(rounded[0], wanted), 0.05);
      EXPECT_LT(relative_error(rounded[1], testing::orthogonalized(b, steps) * scale), 0.05);
      // The scale of what comes in does not matter; a power of two, not a bit.
      EXPECT_TRUE(at::equal(rounded[2], -rounded[0]));
      for (const auto& each : {exact[0], exact[1], rounded[0], rounded[1]}) {
        if (steps == 5) {
          expect_near_orthogonal(each / scale);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NewtonSchulzShapes,
    ::testing::Values(
        std::pair{40, 12}, std::pair{12, 40}, std::pair{24, 24}, std::pair{64, 576},
        std::pair{1, 17}, std::pair{17, 1}, std::pair{1, 1}));

// Their symmetric products are computed in part and mirrored.
TEST(NewtonSchulz, FollowsThePolynomialForLongSides) {
  for (const auto& shape : {std::pair{513, 513}, {514, 1030}}) {
    const at::Tensor matrix = random_matrix(shape, 1);
    const at::Tensor wanted = testing::orthogonalized(matrix, 2);
    const NewtonSchulz newton_schulz(2);
    const std::vector<at::Tensor> exact = {matrix.clone()};
    newton_schulz.one_by_one(exact, 1);
    EXPECT_LT(relative_error(exact[0], wanted), 1e-5);
    const std::vector<at::Tensor> rounded = {matrix.clone()};
    newton_schulz.in_bf16(rounded, 1);
    EXPECT_LT(relative_error(rounded[0], wanted), 0.05);
  }
}

TEST(NewtonSchulz, TakesOneShapeAfterAnother) {
  NewtonSchulz shared;
  for (const auto& [rows, columns] : {std::pair{8, 5}, {30, 40}, {2, 3}, {40, 30}}) {
    for (const bool together : {false, true}) {
      const at::Tensor matrix = random_matrix({rows, columns}, 3);
      const std::vector<at::Tensor> got = {matrix.clone()};
      const std::vector<at::Tensor> wanted = {matrix.clone()};
      NewtonSchulz fresh;
      together ? shared.together(got, 1, at::kBFloat16) : shared.one_by_one(got, 1);
      together ? fresh.together(wanted, 1, at::kBFloat16) : fresh.one_by_one(wanted, 1);
      EXPECT_TRUE(at::equal(got[0], wanted[0])) << rows << " x " << columns;
    }
  }
}

TEST(NewtonSchulz, LeavesZerosAndNothing) {
  NewtonSchulz newton_schulz;
  const std::vector<at::Tensor> zeros = {at::zeros({4, 3})};
  newton_schulz.one_by_one(zeros, 2);
  EXPECT_TRUE(at::equal(zeros[0], at::zeros({4, 3})));
  newton_schulz.together(zeros, 2, at::kBFloat16);
  EXPECT_TRUE(at::equal(zeros[0], at::zeros({4, 3})));
  newton_schulz.apply({}, 1, at::kFloat);
  newton_schulz.apply({at::zeros({0, 3})}, 1, at::kFloat);
}

}  // namespace
}  // namespace abtrain::optim
