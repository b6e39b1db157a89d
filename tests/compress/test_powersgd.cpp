#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

ReducerOptions powersgd(std::int64_t rank, const std::string& dtype = "auto") {
  return scheme("powersgd", {{"rank", std::to_string(rank)}, {"dtype", dtype}});
}

at::Tensor normal(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

// Low rank on every worker: k * outer products.
at::Tensor of_rank(int k, std::int64_t n, std::int64_t m, std::uint64_t seed) {
  return at::matmul(normal({n, k}, seed), normal({k, m}, seed + 500));
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).norm().item<double>() /
         std::max(1e-30, b.to(at::kDouble).norm().item<double>());
}

// After a step of zeros a direction is found again.
TEST(PowerSgd, RecoversFromZeros) {
  const at::Tensor g = of_rank(2, 60, 33, 1).to(at::kFloat).reshape({-1});
  run_steps(
      powersgd(4), one_slot({60, 33}), 2, 4,
      [&](int, std::int64_t t) { return t == 0 ? at::zeros_like(g) : g; },
      [&](std::int64_t t, const Step& step) {
        if (t == 3) {
          EXPECT_LT(distance(step.estimates[0], g), 1e-4);
        }
      });
}

// Where the mean is of the rank that is sent, one power iteration spans it.
TEST(PowerSgd, GivesTheMeanWhereItsRankIsEnough) {
  const auto gradient_of = [](int worker, std::int64_t) {
    // The same columns on all workers, so that their mean is of rank 3.
    return at::matmul(normal({70, 3}, 9), normal({3, 50}, 20 + worker))
        .to(at::kFloat)
        .reshape({-1});
  };
  for (const std::int64_t rank : {3, 4, 7}) {
    run_steps(
        powersgd(rank), one_slot({70, 50}), 3, 2, gradient_of, [&](std::int64_t, const Step& step) {
          EXPECT_LT(distance(step.estimates[0], step.mean()), 1e-4) << rank;
          EXPECT_LT(step.residuals[0].norm().item<double>(), 1e-2);
        });
  }
}

// Warm Q: on gradients that stay the same the estimate becomes the best one of
// its rank (Vogels et al., theorem 1).
TEST(PowerSgd, BecomesTheBestApproximation) {
  ReducerOptions options = powersgd(2);
  options.error_feedback = false;
  const at::Tensor g = of_rank(6, 50, 40, 3).to(at::kFloat);
  const at::Tensor values = std::get<1>(at::linalg_svd(g.to(at::kDouble)));
  const double best =
      values.narrow(0, 2, 38).square().sum().item<double>() / values.square().sum().item<double>();
  double first = 0, last = 0;
  run_steps(
      options, one_slot({50, 40}), 2, 60, [&](int, std::int64_t) { return g.reshape({-1}); },
      [&](std::int64_t t, const Step& step) {
        last = std::pow(distance(step.estimates[0], g.reshape({-1})), 2);
        first = t == 0 ? last : first;
      });
  EXPECT_GT(first, 1.05 * best);
  EXPECT_NEAR(last / best, 1, 1e-3);
}

// Each worker's gradients lie around another mean: the residual that PyTorch's
// hook keeps, less the common estimate, grows without bound there.
TEST(PowerSgd, ResidualsStopGrowing) {
  const at::Tensor center[] = {
      of_rank(3, 24, 20, 60).to(at::kFloat).reshape({-1}),
      of_rank(3, 24, 20, 61).to(at::kFloat).reshape({-1})};
  const auto noise = normal_gradients(24 * 20);
  check_bounded(powersgd(2), one_slot({24, 20}), 2, [&](int worker, std::int64_t t) {
    return noise(worker, t).add(center[worker]);
  });
}

// Several matrices, others too small or of one dimension, in a bucket each and
// all in one: as each alone.
TEST(PowerSgd, MatricesOfABucketDoNotMix) {
  ReducerOptions options = powersgd(2);
  options.error_feedback = false;
  const std::vector<Slot> slots = {
      {"a", 0, {30, 20}, 0},
      {"bias", 600, {30}, 1},
      {"b", 630, {12, 3, 3, 5}, 2},
      {"small", 1170, {4, 3}, 3},
      {"c", 1182, {30, 20}, 4}};
  // What they span: of rank 2, so that each is sent without a loss.
  std::vector<at::Tensor> parts = {
      of_rank(2, 30, 20, 1).reshape({-1}), normal({30}, 2), of_rank(2, 12, 45, 3).reshape({-1}),
      normal({12}, 4), of_rank(2, 30, 20, 5).reshape({-1})};
  const at::Tensor g = at::cat(parts).to(at::kFloat);
  for (const double megabytes : {0.0, 1e-6}) {
    options.bucket_mb = megabytes;
    run_steps(
        options, slots, 3, 3, [&](int, std::int64_t) { return g; },
        [&](std::int64_t, const Step& step) {
          EXPECT_LT(distance(step.estimates[0], g), 1e-5);
          EXPECT_TRUE(step.estimates[0].narrow(0, 600, 30).allclose(g.narrow(0, 600, 30)));
        });
  }
}

TEST(PowerSgd, CompressesOnlyWhatItMakesSmaller) {
  const auto bits = [](std::vector<std::int64_t> sizes, std::int64_t rank) {
    const Volume sent = volume_of(powersgd(rank), one_slot(std::move(sizes)));
    EXPECT_EQ(sent.bytes, 2 * 3 * sent.payload_bits / 32);
    return sent.payload_bits;
  };
  EXPECT_EQ(bits({100, 60}, 4), 32 * 4 * 160);
  EXPECT_EQ(bits({100, 3, 4, 5}, 4), 32 * 4 * 160);
  EXPECT_EQ(bits({100, 60}, 18), 32 * 18 * 160);  // 5760 of 6000 / 2
  EXPECT_EQ(bits({100, 60}, 19), 32 * 6000);
  EXPECT_EQ(bits({6000}, 4), 32 * 6000);
  EXPECT_EQ(bits({1, 6000}, 4), 32 * 6000);
}

TEST(PowerSgd, SixteenBitsHoldSmallGradients) {
  for (const char* dtype : {"fp16", "bf16"}) {
    const at::Tensor g = of_rank(2, 40, 40, 7).to(at::kFloat).mul(1e-4).reshape({-1});
    run_steps(
        powersgd(2, dtype), one_slot({40, 40}), 4, 6, [&](int, std::int64_t) { return g; },
        [&](std::int64_t t, const Step& step) {
          EXPECT_LT(distance(step.estimates[0], g), dtype[0] == 'f' ? 3e-3 : 2e-2) << t;
        });
  }
}

}  // namespace
}  // namespace abtrain::compress
