#include "ops/cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "op_test.h"

namespace abtrain::ops {
namespace {

constexpr std::int64_t kIgnored = -100;

at::Tensor labels_of(std::int64_t rows, std::int64_t classes) {
  return randint(0, classes, {rows}, 9, at::kLong);
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

LossAndGradient entropy(
    const Forms& forms, const at::Tensor& logits, const at::Tensor& labels,
    const EntropyOptions& options = {}) {
  const auto [gradient, loss] = forms.same([&](const Form& form) {
    const LossAndGradient got = cross_entropy(form.of(logits), form.of(labels), options);
    return std::array{got.gradient, got.loss};
  });
  return {loss, gradient};
}

// Checks the loss of each form, since kernels may add more than two losses in another order. bf16
// has 8 bits.
void expect_float64(
    const Forms& forms, const at::Tensor& logits, const at::Tensor& labels,
    const EntropyOptions& options, bool same_loss) {
  const LossAndGradient wanted = in_float64(logits, labels, options);
  const auto [gradient, loss] = forms.same([&](const Form& form) {
    const LossAndGradient got = cross_entropy(form.of(logits), form.of(labels), options);
    EXPECT_NEAR(number(got.loss), number(wanted.loss), 1e-6 * (1 + number(wanted.loss)));
    return std::array{got.gradient, same_loss ? got.loss : at::zeros({})};
  });
  EXPECT_EQ(gradient.scalar_type(), logits.scalar_type());
  const double error = logits.scalar_type() == at::kBFloat16 ? 1.0 / 256 : 2e-6;
  EXPECT_TRUE(gradient.to(at::kDouble).allclose(wanted.gradient, error, 1e-7));
}

ABT_OP_TEST(CrossEntropy, IsThatOfFloat64) {
  // Rows that need one warp to the largest block, once around the lanes and more; aligned and not.
  for (const auto& [classes, type, smoothing] : cases(
           {1L, 2L, 10L, 16L, 250L, 300L, 1000L, 4090L, kEmulated ? 15 : 4095L, 4096L, 4097L, 9001L,
            kEmulated ? 17 : 12'345L, kEmulated ? 18 : 50'304L},
           {at::kFloat, at::kBFloat16}, {0.0, 0.1, 1.0})) {
    const std::int64_t rows = classes <= 18 ? 64 : 5;
    const at::Tensor logits = (randn(rows, classes, 3) * 5).to(type);
    const at::Tensor labels = labels_of(rows, classes);
    labels[0].fill_(classes - 1);
    expect_float64(forms, logits, labels, {smoothing, 0.25, {}}, /*same_loss=*/false);
    const at::Tensor two = labels.clone().fill_(kIgnored);
    two.narrow(0, rows - 2, 2).copy_(labels.narrow(0, rows - 2, 2));
    expect_float64(forms, logits, two, {smoothing, 0.25, kIgnored}, /*same_loss=*/true);
    if (smoothing < 1) {
      labels[1].fill_(kIgnored);
      labels[2].fill_(classes);  // no class
      logits[0][classes / 2].fill_(-INFINITY);
      entropy(forms, logits, labels, {smoothing, 0.5, {}});
      entropy(forms, logits, labels, {smoothing, 0.5, kIgnored});
    }
  }
}

ABT_OP_TEST(CrossEntropy, WithoutALabelThatCountsIsZero) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto got = entropy(
        forms, randn(3, 33, 1).to(type), at::full({3}, kIgnored, at::kLong), {.ignored = kIgnored});
    EXPECT_EQ(number(got.loss), 0);
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
  EXPECT_TRUE(got.loss.to(at::kDouble).allclose(wanted.loss, 1e-6));
  EXPECT_TRUE(got.gradient.to(at::kDouble).allclose(wanted.gradient, 1e-6, 1e-8));
  // Exactly: what is masked takes no part.
  EXPECT_EQ(number(got.gradient[4].count_nonzero()), 17);
  EXPECT_EQ(number(got.gradient[5].count_nonzero()), 0);
}

ABT_OP_TEST(CrossEntropy, IsNotFiniteWhereTheLogitsAreNot) {
  const at::Tensor labels = labels_of(1, 300);
  for (const float bad : {NAN, INFINITY}) {
    const at::Tensor logits = randn(1, 300, 2);
    logits[0][200].fill_(bad);
    const auto got = entropy(forms, logits, labels);
    EXPECT_FALSE(std::isfinite(number(got.loss))) << bad;
    EXPECT_FALSE(got.gradient.isfinite().all().item<bool>()) << bad;
  }
  // All logits masked, or the label's.
  const at::Tensor masked = at::full({1, 300}, -INFINITY);
  EXPECT_TRUE(std::isnan(number(entropy(forms, masked, labels).loss)));
  masked[0][(labels[0].item<std::int64_t>() + 1) % 300].fill_(1);
  EXPECT_EQ(number(entropy(forms, masked, labels).loss), INFINITY);
}

// Not known before the labels are read, perhaps on a GPU.
ABT_OP_TEST(CrossEntropy, OfWhatIsNoClassIsNaN) {
  for (const auto& [label] : cases({8, -1})) {
    const auto got =
        entropy(forms, randn(2, 8, 1), at::tensor({3, label}, at::kLong), {.ignored = kIgnored});
    EXPECT_TRUE(std::isnan(number(got.loss)));
    EXPECT_TRUE(got.gradient[1].isnan().all().item<bool>());
  }
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const at::Tensor logits = randn(2, 8, 1);
  const at::Tensor labels = labels_of(2, 8);
  EXPECT_REFUSED(cross_entropy(logits.t(), labels, {}));
  EXPECT_REFUSED(cross_entropy(logits.to(at::kHalf), labels, {}));
  EXPECT_REFUSED(cross_entropy(logits, labels.to(at::kInt), {}));
  EXPECT_REFUSED(cross_entropy(logits, labels_of(3, 8), {}));
}

ABT_OP_TEST(CrossEntropy, OfAViewThatIsNotAligned) {
  const at::Tensor logits = randn(3, 13, 1), labels = labels_of(3, 13);
  const auto gradient_at = [&](std::int64_t offset) {
    return forms.same([&](const Form& form) {
      return cross_entropy(form.of(logits, offset), form.of(labels), {}).gradient;
    });
  };
  EXPECT_TRUE(gradient_at(1).equal(gradient_at(0)));
}

}  // namespace
}  // namespace abtrain::ops
