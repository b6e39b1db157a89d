// threshold and ternary.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

at::Tensor threshold_of(const at::Tensor& g, double c) {
  const at::Tensor size = g.abs();
  const at::Tensor survives = size.gt(size.mean() * c);
  const at::Tensor level = size.masked_select(survives).mean();
  return g.sign() * level * survives;
}

TEST(LevelReducer, ThresholdIsItsDefinitionInFloat64) {
  run_steps(
      scheme("threshold", {{"c", "0.9"}}), three_slots(), 3, 2, normal_gradients(9714, 0.2),
      [&](std::int64_t, const Step& step) {
        at::Tensor mean = at::zeros({9714}, at::kDouble);
        for (const at::Tensor& g : step.gradients) {
          std::vector<at::Tensor> parts;
          for (const at::Tensor& part : g.to(at::kDouble).split_with_sizes({8192, 1517, 5})) {
            parts.push_back(threshold_of(part, 0.9));
          }
          mean.add_(at::cat(parts), 1.0 / 3);
        }
        EXPECT_LT(step.estimates[0].to(at::kDouble).sub(mean).abs().max().item<double>(), 1e-6);
      });
}

// One level for all: the mean size of all workers' survivors.
TEST(LevelReducer, Int8SharesItsLevels) {
  run_steps(
      scheme("threshold", {{"transport", "int8"}}), one_slot({4000}), 4, 1,
      normal_gradients(4000, 0.4), [&](std::int64_t, const Step& step) {
        at::Tensor sum = at::zeros({4000}, at::kDouble);
        double size = 0;
        double count = 0;
        for (const at::Tensor& gradient : step.gradients) {
          const at::Tensor g = gradient.to(at::kDouble);
          const at::Tensor survives = g.abs().gt(1.5 * g.abs().mean());
          size += g.abs().masked_select(survives).sum().item<double>();
          count += survives.sum().item<double>();
          sum.add_(g.sign() * survives);
        }
        EXPECT_LT(
            step.estimates[0]
                .to(at::kDouble)
                .sub(sum * (size / count / 4))
                .abs()
                .max()
                .item<double>(),
            1e-6);
      });
}

// Of Gaussian numbers: E|q - g|^2 / E g^2 = P a^2 - 2 a E[|g|; |g| > D] + 1,
// with the share P and the level a of the survivors.
TEST(LevelReducer, HaveTheErrorsOfTheirClosedForms) {
  const std::int64_t numel = 1 << 16;
  const double cut = 1.5 * std::sqrt(2 / M_PI);
  const double above = std::erfc(cut / std::sqrt(2));
  const double size = std::sqrt(2 / M_PI) * std::exp(-cut * cut / 2);
  const double level = size / above;
  const double threshold = above * level * level - 2 * level * size + 1;
  EXPECT_NEAR(
      vnmse(scheme("threshold"), one_slot({numel}), 2, normal_gradients(numel)), threshold,
      0.05 * threshold);
  // s E|g| - E g^2, with the largest number s of each worker.
  double ternary = 0;
  for (int i = 0; i < 2; ++i) {
    const auto most = normal_gradients(numel)(i, 0).abs().max().item<double>();
    ternary += (most * std::sqrt(2 / M_PI) - 1) / 2;
  }
  EXPECT_NEAR(
      vnmse(scheme("ternary"), one_slot({numel}), 2, normal_gradients(numel)), ternary,
      0.05 * ternary);
}

// (P - 1) (ceil(d / 4) + 4 tensors); from nine workers on bytes are added up.
TEST(LevelReducer, BytesAreThoseOfTheFormula) {
  for (const std::string name : {"threshold", "ternary"}) {
    for (const int n : {2, 4, 8}) {
      EXPECT_EQ(mean_bytes(scheme(name), three_slots(), n), (n - 1) * ((9714 + 3) / 4 + 4 * 3));
    }
    const double numbers = name == "threshold" ? 2 : 1;
    for (const int n : {9, 16, 127}) {
      EXPECT_NEAR(
          mean_bytes(scheme(name), three_slots(), n), 2.0 * (n - 1) / n * (9714 + 4 * numbers * 3),
          1e-6 * 9714);
    }
    EXPECT_EQ(mean_bytes(scheme(name), three_slots(), 128), 127 * ((9714 + 3) / 4 + 4 * 3));
  }
}

TEST(LevelReducer, RoundByChanceAnewInEveryStepAndWorker) {
  std::vector<at::Tensor> estimates;
  run_steps(
      scheme("ternary"), one_slot({3000}), 2, 2,
      [](int, std::int64_t) { return normal_gradients(3000)(0, 0); },
      [&](std::int64_t, const Step& step) {
        estimates.push_back(step.estimates[0]);
        // Had both workers the same numbers, each estimate were 0 or s.
        const auto s = step.gradients[0].abs().max().item<float>();
        EXPECT_TRUE(step.estimates[0].abs().eq(s / 2).any().item<bool>());
      });
  EXPECT_FALSE(estimates[0].equal(estimates[1]));
}

}  // namespace
}  // namespace abtrain::compress
