#include "ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

constexpr std::int64_t kIgnored = -100;

at::Tensor labels_of(std::int64_t rows, std::int64_t classes) {
  return at::randint(classes, {rows}, at::detail::createCPUGenerator(9), at::kLong);
}

// LibTorch's loss of the same logits in float64, and its gradient.
LossAndGradient in_float64(
    const at::Tensor& logits, const at::Tensor& labels, const EntropyOptions& options) {
  const at::Tensor x = logits.to(at::kDouble).detach().requires_grad_();
  const at::Tensor loss = at::cross_entropy_loss(
      x, labels, {}, at::Reduction::Mean, options.ignored.value_or(kIgnored), options.smoothing);
  (loss * options.weight).backward();
  return {loss.detach(), x.grad()};
}

// bf16 has 8 bits.
double error_of(at::ScalarType type) {
  return type == at::kBFloat16 ? 1.0 / 256 : 2e-6;
}

struct EntropyShape {
  std::int64_t rows, classes;
};

// One class, one unit of lanes, unaligned rows, as many as the lanes, more than
// once around them.
constexpr EntropyShape kShapes[] = {{5, 1},    {7, 2},    {64, 10},  {9, 16},     {3, 1000},
                                    {4, 4095}, {3, 4096}, {3, 4097}, {3, 12'345}, {2, 50'304}};

TEST(CrossEntropy, IsThatOfFloat64) {
  for (const EntropyShape& shape : kShapes) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const double smoothing : {0.0, 0.1, 1.0}) {
        for (const bool ignores : {false, true}) {
          const at::Tensor logits = (randn(shape.rows, shape.classes, 3) * 4).to(type);
          const at::Tensor labels = labels_of(shape.rows, shape.classes);
          EntropyOptions options{smoothing, 0.25, {}};
          if (ignores) {
            labels[shape.rows / 2].fill_(kIgnored);
            options.ignored = kIgnored;
          }
          const LossAndGradient got = cross_entropy(logits, labels, options);
          const LossAndGradient wanted = in_float64(logits, labels, options);
          const std::string what = formatted(
              "{} x {} {} {} {}", shape.rows, shape.classes, toString(type), smoothing, ignores);
          EXPECT_NEAR(
              got.loss.item<double>(), wanted.loss.item<double>(),
              1e-6 * (1 + wanted.loss.item<double>()))
              << what;
          EXPECT_EQ(got.gradient.scalar_type(), type);
          EXPECT_TRUE(
              at::allclose(got.gradient.to(at::kDouble), wanted.gradient, error_of(type), 1e-7))
              << what;
        }
      }
    }
  }
}

TEST(CrossEntropy, WithoutALabelThatCountsIsZero) {
  const at::Tensor labels = at::full({3}, kIgnored, at::kLong);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto got = cross_entropy(randn(3, 33, 1).to(type), labels, {.ignored = kIgnored});
    EXPECT_EQ(got.loss.item<double>(), 0);
    EXPECT_TRUE(got.gradient.equal(at::zeros({3, 33}, type)));
  }
}

TEST(CrossEntropy, OfExtremeLogits) {
  const float most = std::numeric_limits<float>::max();
  const at::Tensor logits = randn(6, 5000, 2);
  logits[0].mul_(1e4);
  logits[1].add_(3e7);
  logits[2][17].fill_(most);
  logits[2][18].fill_(-most);
  logits[3].fill_(-most);
  logits[4].slice(0, 7, 4990).fill_(-INFINITY);  // masked
  logits[5].narrow(0, 0, 4999).fill_(-INFINITY);
  const at::Tensor labels = labels_of(6, 5000);
  labels[2].fill_(17);
  labels[4].fill_(4995);
  labels[5].fill_(4999);
  const auto got = cross_entropy(logits, labels, {});
  const auto wanted = in_float64(logits, labels, {});
  EXPECT_TRUE(at::allclose(got.loss.to(at::kDouble), wanted.loss, 1e-6));
  EXPECT_TRUE(at::allclose(got.gradient.to(at::kDouble), wanted.gradient, 1e-6, 1e-8));
  // Exactly: what is masked takes no part.
  EXPECT_EQ(got.gradient[4].count_nonzero().item<std::int64_t>(), 17);
  EXPECT_EQ(got.gradient[5].count_nonzero().item<std::int64_t>(), 0);
}

TEST(CrossEntropy, IsNotFiniteWhereTheLogitsAreNot) {
  const at::Tensor labels = labels_of(1, 300);
  for (const float bad : {NAN, INFINITY}) {
    const at::Tensor logits = randn(1, 300, 2);
    logits[0][200].fill_(bad);
    const auto got = cross_entropy(logits, labels, {});
    EXPECT_FALSE(std::isfinite(got.loss.item<double>())) << bad;
    EXPECT_FALSE(got.gradient.isfinite().all().item<bool>()) << bad;
  }
  // All logits masked, or the label's.
  const at::Tensor masked = at::full({1, 300}, -INFINITY);
  EXPECT_TRUE(std::isnan(cross_entropy(masked, labels, {}).loss.item<double>()));
  masked[0][(labels[0].item<std::int64_t>() + 1) % 300].fill_(1);
  EXPECT_EQ(cross_entropy(masked, labels, {}).loss.item<double>(), INFINITY);
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const at::Tensor logits = randn(2, 8, 1);
  const at::Tensor labels = labels_of(2, 8);
  EXPECT_THROW(cross_entropy(logits.t(), labels, {}), std::logic_error);
  EXPECT_THROW(cross_entropy(logits.to(at::kHalf), labels, {}), std::logic_error);
  EXPECT_THROW(cross_entropy(logits, labels.to(at::kInt), {}), std::logic_error);
  EXPECT_THROW(cross_entropy(logits, labels_of(3, 8), {}), std::logic_error);
  // Not known before the labels are read, perhaps on a GPU.
  for (const std::int64_t label : {std::int64_t{8}, std::int64_t{-1}}) {
    labels[1].fill_(label);
    const auto got = cross_entropy(logits, labels, {.ignored = kIgnored});
    EXPECT_TRUE(std::isnan(got.loss.item<double>()));
    EXPECT_TRUE(got.gradient[1].isnan().all().item<bool>());
  }
}

TEST(CrossEntropy, OfAViewThatIsNotAligned) {
  const at::Tensor logits = randn(40, 1).flatten().narrow(0, 1, 39).view({3, 13});
  const at::Tensor labels = labels_of(3, 13);
  const auto got = cross_entropy(logits, labels, {});
  EXPECT_TRUE(got.gradient.equal(cross_entropy(logits.clone(), labels, {}).gradient));
}

}  // namespace
}  // namespace abtrain::ops
