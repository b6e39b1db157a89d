#include <ATen/ops/tensor.h>

#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

ReducerOptions twobit(double threshold) {
  ReducerOptions options = scheme("twobit");
  options.threshold = threshold;
  return options;
}

// MXNet's published example, t = 4: what it had as residual and as gradient
// comes in two steps.
TEST(TwoBit, DoesWhatMxnetDoes) {
  const at::Tensor residual =
      at::tensor({-3., 1., -1., 5., -2., 2., 3., -7., -2., -100.}, at::kFloat);
  const at::Tensor gradient = at::tensor({-6., -2., 3., 1., 10., 5., -3., 2., -8., 0.}, at::kFloat);
  const at::Tensor sent = at::tensor({-4., 0., 0., 4., 4., 4., 0., -4., -4., -4.}, at::kFloat);
  const at::Tensor left = at::tensor({-5., -1., 2., 2., 4., 3., 0., -1., -6., -96.}, at::kFloat);
  for (const int n : {2, 4}) {
    run_steps(
        twobit(4), one_slot({10}), n, 1,
        [&](int worker, std::int64_t) {
          return worker == 0 ? residual.add(gradient) : at::zeros({10});
        },
        [&](std::int64_t, const Step& step) {
          EXPECT_TRUE(step.estimates[0].equal(sent.div(n)));
          EXPECT_TRUE(step.residuals[0].equal(left));
          EXPECT_TRUE(step.residuals[1].equal(at::zeros({10})));
        });
  }
}

TEST(TwoBit, BytesAreThoseOfTheFormula) {
  const double d = 64 * 4096;
  const auto slots = one_slot({64, 4096});
  // Two workers gather two bits; more add codes up.
  EXPECT_EQ(mean_bytes(twobit(1), slots, 2), d * 2 / 8);
  EXPECT_EQ(mean_bytes(twobit(1), slots, 4), 3.0 / 4 * d * (2 + 4) / 8);
  EXPECT_EQ(mean_bytes(twobit(1), slots, 8), 7.0 / 8 * d * (2 + 5) / 8);
  EXPECT_EQ(volume_of(twobit(1), slots, {2, 0}).payload_bits, 2 * d);
  EXPECT_EQ(volume_of(twobit(1), slots, {4, 0}).payload_bits, 6 * d);
}

// A worker's gradients within the threshold, of other signs on each worker.
TEST(TwoBit, ResidualsAreBoundedWhereGradientsAreBelowTheThreshold) {
  for (const double shift : {0.0, 0.2}) {
    const auto gradients = [shift](int worker, std::int64_t step) {
      return normal_gradients(100)(worker, step)
          .clamp_(-1, 1)
          .mul_(0.5)
          .add_(worker == 0 ? -shift : shift);
    };
    run_steps(
        twobit(0.8), one_slot({100}), 3, 3000, gradients, [&](std::int64_t t, const Step& step) {
          for (const at::Tensor& residual : step.residuals) {
            ASSERT_LE(residual.abs().max().item<float>(), 0.8f) << t;
          }
        });
  }
}

}  // namespace
}  // namespace abtrain::compress
