// Steps of a scheme and what holds in each of them, whatever the scheme sends.
#pragma once

#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/meter.h"
#include "comm/run_workers.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "reducer_words.h"

namespace abtrain::compress {

using Words = std::vector<std::pair<std::string, std::string>>;  // keys and values

inline ReducerOptions options_of(const std::string& name, const Words& words = {}) {
  ReducerOptions options;
  options.name = name;
  for (const auto& [key, word] : words) {
    set_option(options, key, word);
  }
  return options;
}

// Everything is compressed.
inline ReducerOptions scheme(const std::string& name, const Words& words = {}) {
  ReducerOptions options = options_of(name, words);
  options.min_numel = 1;
  return options;
}

// One tensor that fills the buffer.
inline std::vector<Slot> one_slot(std::vector<std::int64_t> sizes) {
  return {{"w", 0, std::move(sizes)}};
}

// One that fills blocks and chunks, one that does not, a small one.
inline std::vector<Slot> three_slots() {
  return {{"a", 0, {64, 128}}, {"b", 8192, {37, 41}, 1}, {"c", 9709, {5}, 2}};
}

inline std::int64_t numel_of(const std::vector<Slot>& slots) {
  std::int64_t total = 0;
  for (const Slot& slot : slots) {
    total += slot.numel();
  }
  return total;
}

// What a member sends in a step, with all slots in one bucket.
inline Volume volume_of(
    const ReducerOptions& options, const std::vector<Slot>& slots, Member member = {4, 0}) {
  const auto reducer = make_reducer(options, 1);
  reducer->bind({{slots, ranges_of(slots)}});
  return reducer->volume(member, /*dense=*/false);
}

// A copy of what a member keeps from step to step.
inline state::State state_of(GradientExchange& exchange) {
  state::State state;
  auto archive = state::Archive::saving(state);
  exchange.archive(archive, "");
  for (auto& [name, tensor] : state.own) {
    tensor = tensor.clone();
  }
  return state;
}

inline void load_state(GradientExchange& exchange, state::State& state) {
  auto archive = state::Archive::loading(state);
  exchange.archive(archive, "");
}

// The tensors whose names begin so, one after another; undefined if there are none.
inline at::Tensor joined(const state::State& state, const std::string& prefix) {
  std::vector<at::Tensor> parts;
  for (const auto& [name, tensor] : state.own) {
    if (name.starts_with(prefix)) {
      parts.push_back(tensor);
    }
  }
  return parts.empty() ? at::Tensor() : at::cat(parts);
}

// In float64.
inline at::Tensor sum_of(const std::vector<at::Tensor>& tensors) {
  at::Tensor sum = at::zeros_like(tensors[0], at::kDouble);
  for (const at::Tensor& each : tensors) {
    sum.add_(each.to(at::kDouble));
  }
  return sum;
}

// |estimate - mean|^2 / |mean|^2.
inline double vnmse_of(const at::Tensor& estimate, const at::Tensor& mean) {
  return estimate.to(at::kDouble).sub(mean).square().sum().item<double>() /
         mean.square().sum().item<double>();
}

// What the workers hand in and get back in one step, and keep; one tensor per
// worker.
struct Step {
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> before;  // residuals
  std::vector<at::Tensor> estimates;
  std::vector<at::Tensor> residuals;
  std::vector<at::Tensor> scales;  // of thc-saturated
  at::Tensor server;               // residuals of servers, of all shards together; or none
  at::Tensor mean() const {
    return sum_of(gradients).div(static_cast<double>(gradients.size()));
  }
};

using GradientOf = std::function<at::Tensor(int worker, std::int64_t step)>;

// Normal random numbers; each worker has a mean of its own.
inline GradientOf normal_gradients(std::int64_t numel, double shift = 0) {
  return [=](int worker, std::int64_t step) {
    return at::randn(
               {numel},
               at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * worker + step)),
               at::kFloat)
        .add_(shift * worker);
  };
}

// Runs `steps` steps on n workers; `look` sees each when all are through it, and
// `prepare` each worker's exchange before the first one. Checks on the way that
// the meter counts what the formula says, that all workers get the same bits,
// and that a group of one changes nothing.
inline void run_steps(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t steps,
    const GradientOf& gradient_of, const std::function<void(std::int64_t, const Step&)>& look = {},
    const std::function<void(GradientExchange&)>& prepare = {}) {
  const auto size = static_cast<std::size_t>(n);
  Step step;
  std::vector<at::Tensor> servers(size);
  for (auto* each : {&step.gradients, &step.estimates, &step.residuals, &step.scales}) {
    each->resize(size);
  }
  comm::run_workers(n, 60, [&](comm::Communicator& base) {
    comm::TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const auto rank = static_cast<std::size_t>(world->rank());
    const at::Tensor flat = at::zeros({numel_of(slots)});
    GradientExchange exchange(options, 5);
    const ExchangePlan plan(options, slots, {n, world->rank()});
    exchange.bind(slots, flat, *world);
    if (prepare) {
      prepare(exchange);
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      const auto before = meter.of(comm::Purpose::Gradient).bytes;
      flat.copy_(gradient_of(world->rank(), t));
      step.gradients[rank] = flat.clone();
      exchange.finish(t);
      EXPECT_EQ(
          meter.of(comm::Purpose::Gradient).bytes - before,
          plan.bytes_between(0, t + 1) - plan.bytes_between(0, t))
          << "step " << t << " worker " << rank;
      step.estimates[rank] = flat.clone();
      const state::State state = state_of(exchange);
      step.residuals[rank] = joined(state, "residual.");
      step.scales[rank] = joined(state, "scale.");
      servers[rank] = joined(state, "server.");
      world->barrier();
      if (rank == 0) {
        step.server = servers[0].defined() ? at::cat(servers) : at::Tensor();
        for (const at::Tensor& estimate : step.estimates) {
          EXPECT_TRUE(estimate.equal(n == 1 ? step.gradients[0] : step.estimates[0]))
              << "step " << t;
        }
        if (look) {
          look(t, step);
        }
        step.before = step.residuals;
      }
      world->barrier();
    }
  });
}

// Sum of new residuals (+ n times the servers' new residual less the old one) =
// sum of u - n * estimate. For one slot that is compressed as a whole.
inline void check_conservation(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, double tolerance = 2e-5) {
  at::Tensor old_server;
  run_steps(
      options, slots, n, 4, normal_gradients(numel_of(slots), 0.3),
      [&](std::int64_t t, const Step& step) {
        if (n == 1) {
          return;
        }
        at::Tensor left = at::zeros_like(step.gradients[0], at::kDouble);
        at::Tensor right = left.clone();
        double scale = 0;
        for (std::size_t i = 0; i < step.gradients.size(); ++i) {
          ASSERT_TRUE(step.residuals[i].defined());
          left.add_(step.residuals[i].to(at::kDouble));
          at::Tensor u = step.gradients[i].to(at::kDouble);
          if (!step.before.empty()) {
            u = u.add(step.before[i].to(at::kDouble));
          }
          right.add_(u);
          scale = std::max(scale, u.abs().max().item<double>());
        }
        if (step.server.defined()) {
          left.add_(step.server.to(at::kDouble), n);
          if (old_server.defined()) {
            right.add_(old_server.to(at::kDouble), n);
          }
          old_server = step.server;
        }
        right.sub_(step.estimates[0].to(at::kDouble), n);
        const auto error = left.sub_(right).abs().max().item<double>();
        EXPECT_LE(error, tolerance * n * (1 + scale)) << "step " << t;
      });
}

// Over `steps` stationary steps the residuals stop growing: their norm in the
// last quarter is at most 1.5 times that in the second one.
inline void check_bounded(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n,
    const GradientOf& gradient_of, std::int64_t steps = 3000) {
  double second = 0;
  double last = 0;
  run_steps(options, slots, n, steps, gradient_of, [&](std::int64_t t, const Step& s) {
    double norm = 0;
    for (const at::Tensor& residual : s.residuals) {
      norm = std::max(norm, residual.norm().item<double>());
    }
    ASSERT_TRUE(std::isfinite(norm)) << "step " << t;
    double& worst = t < steps / 2 ? second : last;
    if ((t >= steps / 4 && t < steps / 2) || t >= 3 * steps / 4) {
      worst = std::max(worst, norm);
    }
  });
  EXPECT_LE(last, 1.5 * second);
}

// Of one step.
inline double vnmse(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n,
    const GradientOf& gradient_of) {
  double result = 0;
  run_steps(options, slots, n, 1, gradient_of, [&](std::int64_t, const Step& s) {
    result = vnmse_of(s.estimates[0], s.mean());
  });
  return result;
}

}  // namespace abtrain::compress
