#include "linalg/orthogonal.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "linalg/matrices.h"
#include "linalg/svd.h"

namespace abtrain::linalg {
namespace {

at::Tensor oracle(const at::Tensor& w) {
  const auto exact = gesdd(w);
  return at::mm(exact.u, exact.v.t());
}

TEST(Orthogonal, IsThePolarFactor) {
  for (const auto& [m, n] :
       {MatrixShape{1, 1}, MatrixShape{7, 1}, MatrixShape{40, 40}, MatrixShape{90, 33},
        MatrixShape{300, 128}}) {
    const auto w = noise(m, n);
    const auto q = orthogonal_basis(w);
    EXPECT_LT(distance_from_orthonormal(q), 1e-13) << m << "x" << n;
    EXPECT_LT(largest_difference(q, oracle(w)), 1e-10) << m << "x" << n;
    const auto wide = orthogonal_basis(w.t());
    EXPECT_EQ(wide.sizes(), w.t().sizes());
    EXPECT_TRUE(wide.is_contiguous());
    EXPECT_LT(largest_difference(wide.t(), q), 1e-13);
  }
}

TEST(Orthogonal, KeepsTheType) {
  const auto w = noise(30, 20);
  const auto q = orthogonal_basis(w.to(at::kFloat));
  EXPECT_EQ(q.scalar_type(), at::kFloat);
  EXPECT_LT(largest_difference(q, oracle(w)), 1e-5);
}

TEST(Orthogonal, SinglePrecisionKeepsItsDigits) {
  for (const std::int64_t m : {100, 130, 300, 1000}) {
    const auto w = noise(m, 100).to(at::kFloat);
    const auto q = orthogonal_basis(w);
    EXPECT_LT(distance_from_orthonormal(q.to(at::kDouble)), 1e-6) << m;
    EXPECT_LT(largest_difference(q.to(at::kDouble), oracle(w.to(at::kDouble))), 1e-6) << m;
  }
}

TEST(Orthogonal, WorksWithoutFullRank) {
  auto w = with_spectrum(40, {3, 1, 1e-7, 0, 0});
  EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w)), 1e-13);
  EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w.zero_())), 1e-13);
}

TEST(Orthogonal, IllConditionedIsStillThePolarFactor) {
  for (const double smallest : {1e-4, 2e-5, 1e-6}) {
    const auto w = with_spectrum(60, {1, 0.5, 0.1, smallest});
    const auto q = orthogonal_basis(w);
    EXPECT_LT(distance_from_orthonormal(q), 1e-12) << smallest;
    EXPECT_LT(largest_difference(q, oracle(w)), 1e-6) << smallest;
  }
}

TEST(Orthogonal, NotFiniteIsAnError) {
  auto w = noise(5, 4);
  w[1][1] = NAN;
  EXPECT_THROW(orthogonal_basis(w), Error);
}

}  // namespace
}  // namespace abtrain::linalg
