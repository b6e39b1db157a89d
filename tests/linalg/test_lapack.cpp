// Decompositions of numbers that are not finite name the layer.
#include "linalg/lapack.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

#include "error_of.h"
#include "linalg/product.h"
#include "matrices.h"

namespace abtrain::linalg {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Lapack, WhatIsNotFiniteNamesTheLayer) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    at::Tensor w = noise(6, 4);
    w[2][1] = bad;
    expect_error([&] { gesdd(w, "layer 'fc'"); }, ErrorKind::Diverged, {"layer 'fc'"});
    expect_error(
        [&] { eigh(at::mm(w.t(), w), "layer 'fc'"); }, ErrorKind::Diverged, {"layer 'fc'"});
    const at::Tensor good = noise(4, 5).to(at::kFloat);
    const at::Tensor p = w.to(at::kFloat);
    expect_error([&] { product_svd(p, good, "fc"); }, ErrorKind::Diverged, {"layer 'fc'"});
    expect_error([&] { product_svd(good.t(), p.t(), "fc"); }, ErrorKind::Diverged, {"layer 'fc'"});
  }
}

TEST(Lapack, ProductsKeepTheirSmallValues) {
  const at::Tensor p = noise(20, 3).mul(vector_of({1, 1e-2, 1e-4})).to(at::kFloat);
  const at::Tensor q = noise(3, 15, 2).to(at::kFloat);
  const at::Tensor wanted = gesdd(at::mm(p.to(at::kDouble), q.to(at::kDouble))).s;
  const at::Tensor got = product_svd(p, q, "fc").singular_values;
  EXPECT_LT(largest_difference(got.div(wanted.slice(0, 0, 3)), at::ones({3})), 1e-6);
}

TEST(Lapack, LargestFloatsHaveAProduct) {
  const at::Tensor p = noise(8, 3).div(4).mul(3e38).to(at::kFloat);
  const ProductSvd svd = product_svd(p, p.t().contiguous(), "fc");
  EXPECT_TRUE(svd.singular_values.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace abtrain::linalg
