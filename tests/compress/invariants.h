// What every compressing scheme must do, whatever it sends.
#pragma once

#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "comm/meter.h"
#include "comm/run_workers.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"

namespace abtrain::compress {

inline ReducerOptions scheme(const std::string& name) {
  ReducerOptions options;
  options.name = name;
  options.min_numel = 1;  // everything is compressed
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

// What the workers hand in and get back in one step, and keep.
struct Step {
  std::vector<at::Tensor> gradients;  // one per worker
  std::vector<at::Tensor> before;     // residuals, one per worker
  std::vector<at::Tensor> estimates;
  std::vector<at::Tensor> residuals;
  at::Tensor server;  // residuals of servers, of all shards together; or none
  at::Tensor mean() const {
    at::Tensor sum = at::zeros_like(gradients[0], at::kDouble);
    for (const at::Tensor& g : gradients) {
      sum.add_(g.to(at::kDouble));
    }
    return sum.div_(static_cast<double>(gradients.size()));
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

// Runs `steps` steps on n workers; `look` sees each when all are through it.
// Checks on the way that the meter counts what the formula says and that all
// workers get the same bits.
inline void run_steps(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t steps,
    const GradientOf& gradient_of,
    const std::function<void(std::int64_t, const Step&)>& look = {}) {
  const auto size = static_cast<std::size_t>(n);
  Step step;
  step.gradients.resize(size);
  step.estimates.resize(size);
  step.residuals.resize(size);
  std::vector<std::vector<at::Tensor>> servers(size);
  comm::run_workers(n, 60, [&](comm::Communicator& base) {
    comm::TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const auto rank = static_cast<std::size_t>(world->rank());
    const at::Tensor flat = at::zeros({numel_of(slots)});
    GradientExchange exchange(options, 5);
    const ExchangePlan plan(options, slots, {n, world->rank()});
    exchange.bind(slots, flat, *world);
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
      if (!look) {
        continue;
      }
      state::State state;
      auto archive = state::Archive::saving(state);
      exchange.archive(archive, "");
      std::vector<at::Tensor> residuals;
      servers[rank].clear();
      for (const auto& [name, tensor] : state.own) {
        if (!tensor.defined()) {
          continue;
        }
        if (name.starts_with("residual.")) {
          residuals.push_back(tensor.clone());
        } else if (name.starts_with("server.")) {
          servers[rank].push_back(tensor.clone());
        }
      }
      step.residuals[rank] = residuals.empty() ? at::Tensor() : at::cat(residuals);
      world->barrier();
      if (rank == 0) {
        std::vector<at::Tensor> all;
        for (const auto& shards : servers) {
          all.insert(all.end(), shards.begin(), shards.end());
        }
        step.server = all.empty() ? at::Tensor() : at::cat(all);
        for (const at::Tensor& estimate : step.estimates) {
          EXPECT_TRUE(estimate.equal(step.estimates[0])) << "step " << t;
        }
        look(t, step);
        step.before = step.residuals;
      }
      world->barrier();
    }
  });
  for (const at::Tensor& estimate : step.estimates) {
    EXPECT_TRUE(estimate.equal(step.estimates[0]));
  }
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
          EXPECT_TRUE(step.estimates[0].equal(step.gradients[0]));
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
// last quarter is at most `factor` times that in the second one.
inline void check_bounded(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n,
    const GradientOf& gradient_of, std::int64_t steps = 3000, double factor = 1.5) {
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
  EXPECT_LE(last, factor * second);
}

inline void check_zero(const ReducerOptions& options, const std::vector<Slot>& slots, int n) {
  run_steps(
      options, slots, n, 3, [&](int, std::int64_t) { return at::zeros({numel_of(slots)}); },
      [&](std::int64_t, const Step& step) {
        EXPECT_TRUE(step.estimates[0].eq(0).all().item<bool>());
      });
}

// |estimate - mean|^2 / |mean|^2 of the last of `steps` steps, averaged over
// `seeds` draws where steps is 1.
inline double vnmse(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n,
    const GradientOf& gradient_of, std::int64_t steps = 1) {
  double result = 0;
  run_steps(options, slots, n, steps, gradient_of, [&](std::int64_t, const Step& s) {
    const at::Tensor mean = s.mean();
    const at::Tensor error = s.estimates[0].to(at::kDouble).sub(mean);
    result = error.square().sum().item<double>() / mean.square().sum().item<double>();
  });
  return result;
}

}  // namespace abtrain::compress
