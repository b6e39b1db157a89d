#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "base/text.h"
#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

ReducerOptions twobit(double threshold) {
  ReducerOptions options = scheme("twobit");
  options.threshold = threshold;
  return options;
}

TEST(TwoBit, KeepsWhatItDoesNotSend) {
  for (const int n : {1, 2, 3, 4, 8}) {
    for (const std::int64_t numel : {1, 33, 4097, 40001}) {
      SCOPED_TRACE(abtrain::str(n, " workers, ", numel));
      check_conservation(twobit(0.5), one_slot({numel}), n);
    }
  }
}

// MXNet's published example, as the step of one of two workers.
TEST(TwoBit, DoesWhatMxnetDoes) {
  const at::Tensor residual =
      at::tensor({-3., 1., -1., 5., -2., 2., 3., -7., -2., -100.}, at::kFloat);
  const at::Tensor gradient =
      at::tensor({-6., -2., 3., 1., 10., 5., -3., 2., -8., 0.}, at::kFloat);
  // A threshold that sends nothing leaves the residual in the first step.
  const at::Tensor sent =
      at::tensor({-4., 0., 0., 4., 4., 4., 0., -4., -4., -4.}, at::kFloat);
  const at::Tensor left =
      at::tensor({-5., -1., 2., 2., 4., 3., 0., -1., -6., -96.}, at::kFloat);
  ReducerOptions options = twobit(4);
  run_steps(
      options,
      one_slot({10}),
      2,
      1,
      [&](int worker, std::int64_t) {
        return worker == 0 ? residual.add(gradient) : at::zeros({10});
      },
      [&](std::int64_t, const Step& step) {
        EXPECT_TRUE(step.estimates[0].equal(sent.div(2)));
        EXPECT_TRUE(step.residuals[0].equal(left));
        EXPECT_TRUE(step.residuals[1].equal(at::zeros({10})));
      });
}

}  // namespace
}  // namespace abtrain::compress
