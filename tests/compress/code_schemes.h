// Helpers of the tests of schemes that send codes.
#pragma once

#include <ATen/ops/zeros_like.h>

#include <nlohmann/json.hpp>

#include "compress/invariants.h"

namespace abtrain::compress {

// The members' estimates of one step, of gradients that need not be finite.
inline std::vector<at::Tensor> estimates_of(
    const ReducerOptions& options, const std::vector<Slot>& slots,
    const std::vector<at::Tensor>& gradients, std::int64_t step = 0) {
  std::vector<at::Tensor> estimates(gradients.size());
  comm::run_workers(static_cast<int>(gradients.size()), 60, [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const at::Tensor flat = gradients[rank].clone();
    GradientExchange exchange(options, 5);
    exchange.bind(slots, flat, world);
    exchange.finish(step);
    estimates[rank] = flat;
  });
  return estimates;
}

// A NaN or an infinity anywhere, in any worker's gradient, shows to all.
inline void check_not_finite(
    const ReducerOptions& options, const std::vector<Slot>& slots,
    const std::vector<std::int64_t>& places) {
  for (const int n : {2, 3}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const std::int64_t place : places) {
        std::vector<at::Tensor> gradients;
        for (int i = 0; i < n; ++i) {
          gradients.push_back(normal_gradients(numel_of(slots))(i, 0));
        }
        gradients.back()[place].fill_(bad);
        for (const at::Tensor& estimate : estimates_of(options, slots, gradients)) {
          EXPECT_FALSE(estimate.isfinite().all().item<bool>()) << bad << " at " << place;
        }
      }
    }
  }
}

// Bytes of all members of a step, by their mean.
inline double mean_bytes(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t step = 0) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const ExchangePlan plan(options, slots, {n, i});
    sum += static_cast<double>(plan.bytes_between(0, step + 1) - plan.bytes_between(0, step));
  }
  return sum / n;
}

// Half of the steps, a checkpoint, and the other half by other objects: the
// estimates of an unbroken run.
inline void check_resume(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t steps) {
  const GradientOf gradient_of = normal_gradients(numel_of(slots), 0.3);
  comm::run_workers(n, 60, [&](comm::Communicator& world) {
    const at::Tensor whole = at::zeros({numel_of(slots)});
    const at::Tensor broken = at::zeros({numel_of(slots)});
    GradientExchange unbroken(options, 5);
    unbroken.bind(slots, whole, world);
    state::State state;
    for (const bool second : {false, true}) {
      GradientExchange exchange(options, 5);
      exchange.bind(slots, broken, world);
      if (second) {
        auto archive = state::Archive::loading(state);
        exchange.archive(archive, "");
      }
      const std::int64_t half = steps / 2;
      for (std::int64_t t = second ? half : 0; t < (second ? steps : half); ++t) {
        whole.copy_(gradient_of(world.rank(), t));
        unbroken.finish(t);
        broken.copy_(gradient_of(world.rank(), t));
        exchange.finish(t);
        EXPECT_TRUE(broken.equal(whole)) << "step " << t;
      }
      if (!second) {
        state::State saved;
        auto archive = state::Archive::saving(saved);
        exchange.archive(archive, "");
        for (const auto& [name, tensor] : saved.own) {
          state.own[name] = tensor.clone();
        }
        *state.values = *saved.values;
      }
    }
  });
}

}  // namespace abtrain::compress
