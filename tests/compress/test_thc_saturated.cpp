#include <ATen/ops/full.h>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

// Steps of one bucket, from a state with this scale (0: the first one) and
// without residuals.
std::vector<Step> run(
    int n, std::int64_t numel, std::int64_t steps, const GradientOf& gradient_of, float scale = 0,
    const std::string& feedback = "true") {
  std::vector<Step> all;
  run_steps(
      scheme("thc-saturated", {{"error_feedback", feedback}}), one_slot({numel}), n, steps,
      gradient_of,
      [&](std::int64_t, const Step& step) {
        for (const at::Tensor& each : step.scales) {
          EXPECT_TRUE(each.equal(step.scales[0]));
        }
        all.push_back(step);
      },
      [&](GradientExchange& exchange) {
        if (scale > 0) {
          state::State state;
          state.own["residual.0"] = at::zeros({numel});
          state.own["scale.0"] = at::full({1}, scale);
          load_state(exchange, state);
        }
      });
  return all;
}

// With a range of n times one worker's no sum is clamped.
TEST(ThcSaturated, NothingIsLostWhereNoSumIsClamped) {
  for (const int n : {2, 3, 4, 8}) {
    for (const std::int64_t numel : {1, 1023, 1025, 70001}) {
      const Step got =
          run(n, numel, 1, normal_gradients(numel, 0.2), static_cast<float>(n)).front();
      const at::Tensor right = sum_of(got.gradients).sub(got.estimates[0].to(at::kDouble), n);
      EXPECT_LE(sum_of(got.residuals).sub(right).abs().max().item<double>(), 1e-4 * n)
          << n << " x " << numel;
      // And it is no trivial equation: something was sent.
      EXPECT_GT(got.estimates[0].norm().item<double>(), 0) << numel;
    }
  }
}

TEST(ThcSaturated, BytesAreThoseOfTheFormula) {
  // 8 blocks over 4 workers: two each, of 512 bytes, and a tail of 16.
  const Volume sent = volume_of(scheme("thc-saturated"), one_slot({8192}), {4, 1});
  EXPECT_EQ(sent.bytes, 2 * 3 * 2 * 4 + 3 * 1024 + 3 * (1024 + 16));
  EXPECT_EQ(sent.payload_bits, 8 * 32 + 4 * 8192);
}

TEST(ThcSaturated, TheFirstRangeGrowsWithTheMembers) {
  const std::int64_t numel = 1 << 15;
  for (const int n : {2, 4, 8}) {
    const auto error = [&](float scale) {
      const Step step = run(n, numel, 1, normal_gradients(numel), scale).front();
      return vnmse_of(step.estimates[0], step.mean());
    };
    // Of independent gradients: the first range, one worker's own, n times it.
    const double first = error(0);
    EXPECT_LT(first, 0.2) << n;
    EXPECT_LT(first, error(static_cast<float>(n))) << n;
    if (n >= 4) {
      EXPECT_LT(first, error(0.7F)) << n;
    }
  }
}

// The share of clamped sums is brought between 1 and 4 %.
TEST(ThcSaturated, TheRangeFollowsTheClampedShare) {
  const auto scale = [](const Step& step) { return step.scales[0].item<float>(); };
  const std::int64_t numel = 1 << 13;
  // Where all have the same gradient a sum is n times as large.
  const auto same = [&](int, std::int64_t step) { return normal_gradients(numel)(0, step); };
  const std::vector<Step> got = run(4, numel, 20, same, 0, "false");
  EXPECT_FLOAT_EQ(scale(got[0]), 1.25F * 1.1F);
  EXPECT_FLOAT_EQ(scale(got[1]), 1.25F * 1.1F * 1.1F);
  // A normal number is beyond 2.054 (4 %) to 2.576 (1 %) of its deviation; the
  // range is 3.297 * scale / 4 of it, its last step half a step wide.
  EXPECT_GT(scale(got.back()), 4 * 2.054F / 3.297F * 0.85F);
  EXPECT_LT(scale(got.back()), 4 * 2.576F / 3.297F * 1.1F);
  // Gradients that cancel: the range shrinks, but not for ever.
  const auto opposite = [](int worker, std::int64_t) {
    return normal_gradients(2048)(0, 1).mul(worker == 0 ? 1 : -1);
  };
  const float less = scale(run(2, 2048, 40, opposite, 0, "false").back());
  EXPECT_LT(less, 0.5F);
  EXPECT_GE(less, 0.25F);
}

}  // namespace
}  // namespace abtrain::compress
