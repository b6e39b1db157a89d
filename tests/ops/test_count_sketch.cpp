#include "ops/count_sketch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "tensors.h"

namespace abtrain::ops {
namespace {

at::Tensor sketch_of(const at::Tensor& x, std::int64_t buckets, std::uint32_t seed = 5) {
  const at::Tensor sketch = at::empty({buckets}, x.options());
  count_sketch(x, {}, seed, sketch);
  return sketch;
}

// A unit vector has one number of size 1 in its sketch; neighbors of a run have
// buckets of their own.
TEST(CountSketch, PutsEachNumberIntoOneBucketWithASign) {
  constexpr std::int64_t kNumel = 50;
  constexpr std::int64_t kBuckets = 8;
  int plus = 0;
  int turned = 0;
  for (std::int64_t begin = 0; begin < kNumel; begin += kBuckets) {
    at::Tensor used = at::zeros({kBuckets});
    for (std::int64_t i = begin; i < std::min(kNumel, begin + kBuckets); ++i) {
      at::Tensor unit = at::zeros({kNumel});
      unit[i] = 1;
      const at::Tensor sketch = sketch_of(unit, kBuckets);
      EXPECT_EQ(sketch.abs().sum().item<double>(), 1);
      plus += sketch.sum().item<double>() > 0 ? 1 : 0;
      turned += sketch[i - begin].item<double>() == 0 ? 1 : 0;
      used.add_(sketch.abs());
    }
    EXPECT_LE(used.max().item<double>(), 1);
  }
  EXPECT_GT(plus, 12);
  EXPECT_LT(plus, 38);
  EXPECT_GT(turned, 25);
}

TEST(CountSketch, IsLinearAndOfADifference) {
  for (const std::int64_t numel : {1, 127, 128, 129, 100000}) {
    const at::Tensor a = randn(numel, 1);
    const at::Tensor b = randn(numel, 2);
    const at::Tensor difference = at::empty({128});
    count_sketch(a, b, 5, difference);
    EXPECT_LT(
        (difference - (sketch_of(a, 128) - sketch_of(b, 128))).abs().max().item<double>(), 1e-3);
  }
}

// Their mean over seeds is the product; one's deviation is about |a| |b| /
// sqrt(buckets).
TEST(CountSketch, KeepsProductsInTheMean) {
  constexpr std::int64_t kBuckets = 256;
  constexpr int kSeeds = 400;
  const at::Tensor a = randn(3000, 1);
  const at::Tensor b = randn(3000, 2).add_(a, 0.5);
  const double exact = at::dot(a, b).item<double>();
  const double size = a.norm().item<double>() * b.norm().item<double>();
  double sum = 0;
  double squares = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const double product =
        at::dot(sketch_of(a, kBuckets, seed), sketch_of(b, kBuckets, seed)).item<double>();
    sum += product - exact;
    squares += (product - exact) * (product - exact);
  }
  const double one = size / std::sqrt(kBuckets);
  EXPECT_LT(std::abs(sum / kSeeds), 4 * one / std::sqrt(kSeeds));
  const double deviation = std::sqrt(squares / kSeeds);
  EXPECT_GT(deviation, 0.7 * one);
  EXPECT_LT(deviation, 1.5 * one);
}

TEST(CountSketchErrors, RefuseWhatDoesNotFit) {
  EXPECT_THROW(sketch_of(at::zeros({5}), 0), std::logic_error);
  EXPECT_THROW(count_sketch(at::zeros({5}), at::zeros({4}), 1, at::zeros({2})), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
