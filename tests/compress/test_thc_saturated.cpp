#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <cmath>

#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

struct Result {
  std::vector<at::Tensor> estimates, residuals;
  std::vector<float> scales;                      // of each worker, after the last step
  std::vector<std::vector<float>> scale_of_step;  // of worker 0
};

// Steps of one bucket, from a state with this scale (0: the first one) and
// without residuals.
Result run(
    int n, std::int64_t numel, std::int64_t steps, const GradientOf& gradient_of, float scale = 0,
    bool feedback = true) {
  const auto size = static_cast<std::size_t>(n);
  Result result;
  result.estimates.resize(size);
  result.residuals.resize(size);
  result.scales.resize(size);
  result.scale_of_step.resize(size);
  comm::run_workers(n, 60, [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const at::Tensor flat = at::zeros({numel});
    ReducerOptions options = scheme("thc-saturated");
    options.error_feedback = feedback;
    GradientExchange exchange(options, 5);
    exchange.bind(one_slot({numel}), flat, world);
    if (scale > 0) {
      state::State state;
      state.own["residual.0"] = at::zeros({numel});
      state.own["scale.0"] = at::full({1}, scale);
      auto archive = state::Archive::loading(state);
      exchange.archive(archive, "");
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      flat.copy_(gradient_of(world.rank(), t));
      exchange.finish(t);
      state::State state;
      auto archive = state::Archive::saving(state);
      exchange.archive(archive, "");
      result.scales[rank] = state.own["scale.0"].item<float>();
      result.scale_of_step[rank].push_back(result.scales[rank]);
      result.residuals[rank] = state.own["residual.0"].clone();
    }
    result.estimates[rank] = flat.clone();
  });
  for (std::size_t i = 1; i < size; ++i) {
    EXPECT_TRUE(result.estimates[i].equal(result.estimates[0]));
    EXPECT_EQ(result.scale_of_step[i], result.scale_of_step[0]);
  }
  return result;
}

at::Tensor sum_of(const std::vector<at::Tensor>& tensors) {
  at::Tensor sum = at::zeros_like(tensors[0], at::kDouble);
  for (const at::Tensor& each : tensors) {
    sum.add_(each.to(at::kDouble));
  }
  return sum;
}

// With a range of n times one worker's no sum is clamped.
TEST(ThcSaturated, NothingIsLostWhereNoSumIsClamped) {
  for (const int n : {2, 3, 4, 8}) {
    for (const std::int64_t numel : {1, 1023, 1025, 70001}) {
      const auto gradient = normal_gradients(numel, 0.2);
      const Result got = run(n, numel, 1, gradient, static_cast<float>(n));
      std::vector<at::Tensor> u;
      for (int i = 0; i < n; ++i) {
        u.push_back(gradient(i, 0));
      }
      const at::Tensor right = sum_of(u).sub(got.estimates[0].to(at::kDouble), n);
      EXPECT_LE(sum_of(got.residuals).sub(right).abs().max().item<double>(), 1e-4 * n)
          << n << " x " << numel;
      // And it is no trivial equation: something was sent.
      EXPECT_GT(got.estimates[0].norm().item<double>(), 0) << numel;
    }
  }
}

TEST(ThcSaturated, ZeroGivesZero) {
  for (const int n : {1, 2, 8}) {
    check_zero(scheme("thc-saturated"), one_slot({1500}), n);
  }
}

TEST(ThcSaturated, ResidualsStayBounded) {
  ReducerOptions options = scheme("thc-saturated");
  options.block = 128;
  check_bounded(options, one_slot({300}), 2, normal_gradients(300, 0.5));
}

TEST(ThcSaturated, BytesFollowTheMeter) {
  for (const int n : {1, 2, 3, 8}) {
    for (const std::int64_t numel : {1, 1025, 70001}) {
      run_steps(
          scheme("thc-saturated"), one_slot({numel}), n, 2, normal_gradients(numel),
          [](std::int64_t, const Step&) {});
    }
  }
  // 8 blocks over 4 workers: two each, of 512 bytes, and a tail of 16.
  const ExchangePlan plan(scheme("thc-saturated"), one_slot({8192}), {4, 1});
  EXPECT_EQ(plan.usual_bytes(), 2 * 3 * 2 * 4 + 3 * 1024 + 3 * (1024 + 16));
  const auto reducer = make_reducer(scheme("thc-saturated"), 1);
  reducer->bind({{one_slot({8192})}});
  EXPECT_EQ(reducer->volume({4, 0}, 0).payload_bits, 8 * 32 + 4 * 8192);
}

double vnmse_of(const at::Tensor& estimate, const std::vector<at::Tensor>& u) {
  const at::Tensor mean = sum_of(u).div(static_cast<double>(u.size()));
  return estimate.to(at::kDouble).sub(mean).square().sum().item<double>() /
         mean.square().sum().item<double>();
}

TEST(ThcSaturated, TheFirstRangeGrowsWithTheMembers) {
  const std::int64_t numel = 1 << 15;
  for (const int n : {2, 4, 8}) {
    const auto gradient = normal_gradients(numel);
    std::vector<at::Tensor> u;
    for (int i = 0; i < n; ++i) {
      u.push_back(gradient(i, 0));
    }
    // Of independent gradients: the first range, one worker's own, n times it.
    const double first = vnmse_of(run(n, numel, 1, gradient).estimates[0], u);
    const double most = vnmse_of(run(n, numel, 1, gradient, static_cast<float>(n)).estimates[0], u);
    EXPECT_LT(first, 0.2) << n;
    EXPECT_LT(first, most) << n;
    if (n >= 4) {
      const double own = vnmse_of(run(n, numel, 1, gradient, 0.7F).estimates[0], u);
      EXPECT_LT(first, own) << n;
    }
  }
}

// The share of clamped sums is brought between 1 and 4 %.
TEST(ThcSaturated, TheRangeFollowsTheClampedShare) {
  const std::int64_t numel = 1 << 13;
  // Where all have the same gradient a sum is n times as large.
  const auto same = [&](int, std::int64_t step) { return normal_gradients(numel)(0, step); };
  const Result got = run(4, numel, 20, same, 0, false);
  const std::vector<float>& scales = got.scale_of_step[0];
  EXPECT_FLOAT_EQ(scales[0], 1.25F * 1.1F);
  EXPECT_FLOAT_EQ(scales[1], 1.25F * 1.1F * 1.1F);
  // A normal number is beyond 2.054 (4 %) to 2.576 (1 %) of its deviation; the
  // range is 3.297 * scale / 4 of it, its last step half a step wide.
  EXPECT_GT(scales.back(), 4 * 2.054F / 3.297F * 0.85F);
  EXPECT_LT(scales.back(), 4 * 2.576F / 3.297F * 1.1F);
  // Gradients that cancel: the range shrinks, but not for ever.
  const Result less = run(
      2, 2048, 40,
      [](int worker, std::int64_t) {
        return normal_gradients(2048)(0, 1).mul(worker == 0 ? 1 : -1);
      },
      0, false);
  EXPECT_LT(less.scales[0], 0.5F);
  EXPECT_GE(less.scales[0], 0.25F);
}

TEST(ThcSaturated, GoesOnFromACheckpointToTheBit) {
  const std::int64_t numel = 3000;
  const auto gradient = normal_gradients(numel, 0.4);
  std::vector<at::Tensor> whole(3), resumed(3);
  comm::run_workers(3, 60, [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    state::State state;
    const at::Tensor flat = at::zeros({numel});
    GradientExchange exchange(scheme("thc-saturated"), 5);
    exchange.bind(one_slot({numel}), flat, world);
    for (std::int64_t t = 0; t < 8; ++t) {
      if (t == 4) {
        auto archive = state::Archive::saving(state);
        exchange.archive(archive, "");
        for (auto& [name, tensor] : state.own) {
          tensor = tensor.clone();
        }
      }
      flat.copy_(gradient(world.rank(), t));
      exchange.finish(t);
    }
    whole[rank] = flat.clone();
    GradientExchange second(scheme("thc-saturated"), 5);
    second.bind(one_slot({numel}), flat, world);
    auto archive = state::Archive::loading(state);
    second.archive(archive, "");
    for (std::int64_t t = 4; t < 8; ++t) {
      flat.copy_(gradient(world.rank(), t));
      second.finish(t);
    }
    resumed[rank] = flat.clone();
  });
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(whole[i].equal(resumed[i]));
  }
}

}  // namespace
}  // namespace abtrain::compress
