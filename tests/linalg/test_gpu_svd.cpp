#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "device/devices.h"
#include "error_of.h"
#include "linalg/matrices.h"
#include "linalg/product.h"
#include "linalg/svd.h"

namespace abtrain::linalg {
namespace {

class GpuSvd : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  const at::Device gpu_{at::kCUDA, 0};
};

TEST_F(GpuSvd, DriversAgreeWithLapack) {
  for (const std::int64_t n : {1, 7, 64, 200}) {
    const auto w = noise(n + 30, n, 3);
    const auto exact = gesdd(w);
    const double first = exact.s[0].item<double>();
    const auto got = gesdd(w.to(gpu_));
    EXPECT_LT(largest_difference(got.s.cpu(), exact.s), 1e-10 * first);
    const auto product = at::mm(got.u.mul(got.s), got.v.t()).cpu();
    EXPECT_LT(largest_difference(product, w), 1e-10 * first);
    const auto gram = at::mm(w.t(), w);
    const auto [values, vectors] = eigh(gram.to(gpu_), "w");
    const auto v = vectors.cpu();
    EXPECT_LT(distance_from_orthonormal(v), 1e-11);
    EXPECT_LT(largest_difference(at::mm(v.mul(values.cpu()), v.t()), gram), 1e-11 * first * first);
  }
}

// A matrix, and a grid of blocks, which go to the GPU's solver together.
TEST_F(GpuSvd, DecompositionsAgreeWithTheCpu) {
  for (const at::Tensor& w :
       {noise(300, 128, 1), noise(64, 64, 4), noise(12 * 90, 64, 2).view({3, 3, 120, 64})}) {
    const at::Tensor matrix = w.to(at::kFloat);
    const Decomposition here(matrix, "w");
    const Decomposition there(matrix.to(gpu_), "w");
    ASSERT_EQ(here.singular_values().size(), there.singular_values().size());
    for (std::size_t i = 0; i < here.singular_values().size(); ++i) {
      EXPECT_NEAR(
          there.singular_values()[i], here.singular_values()[i],
          2e-7 * here.singular_values().front());
    }
    for (const std::int64_t kept : {1, 20}) {
      const LowRankPair a = here.factors(matrix, kept);
      const LowRankPair b = there.factors(matrix.to(gpu_), kept);
      EXPECT_LT(largest_difference(at::matmul(b.a, b.b).cpu(), at::matmul(a.a, a.b)), 1e-4);
    }
  }
}

TEST_F(GpuSvd, NotFiniteNamesTheLayer) {
  const at::Tensor w = noise(90, 64).to(at::kFloat).to(gpu_);
  w[5][7] = INFINITY;
  expect_error([&] { Decomposition(w, "c"); }, ErrorKind::Diverged, {"'c'"});
}

TEST_F(GpuSvd, ProductsThatAreNotFiniteNameTheLayer) {
  const at::Tensor good = noise(9, 3).to(at::kFloat).to(gpu_);
  const at::Tensor bad = good.div(0.0);
  expect_error([&] { product_svd(bad, good.t(), "fc2"); }, ErrorKind::Diverged, {"'fc2'"});
}

TEST_F(GpuSvd, ProductsAgreeWithTheCpu) {
  for (unsigned i = 0; i < 3; ++i) {
    const std::int64_t k = i < 2 ? 12 : 5;
    const auto p = noise(80, k, i).to(at::kFloat);
    const auto q = noise(k, 60, i + 9).to(at::kFloat);
    const auto cpu = product_svd(p, q, "a").singular_values;
    const auto gpu = product_svd(p.to(gpu_), q.to(gpu_), "a").singular_values;
    EXPECT_LT(largest_difference(gpu.cpu(), cpu), 1e-9 * cpu[0].item<double>());
  }
}

}  // namespace
}  // namespace abtrain::linalg
