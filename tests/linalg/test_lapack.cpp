// Decompositions that end in every case: with a layer's name where numbers are
// not finite, by Jacobi rotations where a driver does not converge.
#include "linalg/lapack.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "linalg/product.h"
#include "linalg/tridiagonal.h"
#include "matrices.h"

namespace abtrain::linalg {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The message of the Error(Diverged) that `body` throws.
template <class Body>
std::string divergence(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Diverged) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_svd_of(const ThinSvd& svd, const at::Tensor& w) {
  const double size = w.abs().max().item<double>() + 1e-300;
  EXPECT_LT(
      largest_difference(
          at::mm(svd.u.mul(svd.s), svd.v.t()).div(size), w.div(size)),
      1e-12);
  EXPECT_LT(distance_from_orthonormal(svd.u), 1e-12);
  EXPECT_LT(distance_from_orthonormal(svd.v), 1e-12);
}

TEST(Lapack, JacobiAgreesWithGesdd) {
  const std::vector<at::Tensor> matrices = {
      noise(40, 17),
      noise(5, 1),
      noise(12, 12).mul(1e200),
      noise(12, 12).mul(1e-200),
      with_spectrum(30, {4, 4, 4, 1e-3, 1e-9, 0, 0}),
      at::zeros({6, 3}, at::kDouble)};
  for (const at::Tensor& w : matrices) {
    const ThinSvd svd = jacobi_svd(w);
    expect_svd_of(svd, w);
    const at::Tensor s = gesdd(w).s;
    EXPECT_LT(
        largest_difference(svd.s, s), 1e-13 * s[0].item<double>() + 1e-300);
  }
}

TEST(Lapack, ADriverThatDoesNotConvergeIsReplaced) {
  const at::Tensor w = noise(20, 9);
  const auto fails = [](const at::Tensor&) -> ThinSvd {
    TORCH_CHECK_LINALG(false, "linalg.svd: failed to converge");
  };
  expect_svd_of(svd_by(fails, w, "layer 'fc'"), w);
}

TEST(Lapack, JacobiSolvesGramMatrices) {
  const at::Tensor w = noise(30, 8);
  const at::Tensor gram = at::mm(w.t(), w);
  const ThinSvd jacobi = jacobi_svd(gram);
  const SymmetricEigen lapack = eigh(gram, "w");
  EXPECT_LT(largest_difference(jacobi.s.flip(0), lapack.values), 1e-11);
}

TEST(Lapack, WhatIsNotFiniteNamesTheLayer) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    at::Tensor w = noise(6, 4);
    w[2][1] = bad;
    EXPECT_NE(
        divergence([&] { gesdd(w, "layer 'fc'"); }).find("layer 'fc'"),
        std::string::npos);
    EXPECT_NE(
        divergence([&] {
          eigh(at::mm(w.t(), w), "layer 'fc'");
        }).find("layer 'fc'"),
        std::string::npos);
    const at::Tensor good = noise(4, 5).to(at::kFloat);
    const at::Tensor p = w.to(at::kFloat);
    EXPECT_NE(
        divergence([&] { product_svd(p, good, "fc"); }).find("layer 'fc'"),
        std::string::npos);
    EXPECT_NE(
        divergence([&] {
          product_svds({{good.t(), p.t()}}, {"fc"}, nullptr);
        }).find("layer 'fc'"),
        std::string::npos);
  }
}

TEST(Lapack, LargestFloatsHaveAProduct) {
  const at::Tensor p = noise(8, 3).div(4).mul(3e38).to(at::kFloat);
  const ProductSvd svd = product_svd(p, p.t().contiguous(), "fc");
  EXPECT_TRUE(svd.singular_values.isfinite().all().item<bool>());
}

TEST(Lapack, BisectionAgreesWithQl) {
  Tridiagonal t;
  t.n = 60;
  const at::Tensor numbers = noise(2, t.n);
  for (std::int64_t i = 0; i < t.n; ++i) {
    t.diagonal.push_back(numbers[0][i].item<double>());
    if (i + 1 < t.n) {  // some couplings vanish
      t.off.push_back(i % 7 == 0 ? 0 : numbers[1][i].item<double>());
    }
  }
  const auto ql = eigenvalues(t);
  const auto bisected = eigenvalues_by_bisection(t);
  ASSERT_EQ(ql.size(), bisected.size());
  for (std::size_t i = 0; i < ql.size(); ++i) {
    EXPECT_NEAR(ql[i], bisected[i], 1e-13);
  }
}

}  // namespace
}  // namespace abtrain::linalg
