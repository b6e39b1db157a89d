// What members of a group send in a step, and get in one.
#pragma once

#include "compress/invariants.h"

namespace abtrain::compress {

// Schemes whose record of a tensor does not depend on the other members.
inline const std::vector<std::string> kWires = {"int8", "int4", "int2", "sparseloco"};

// Gradients of n members, in step 0; each has a mean of its own.
inline std::vector<at::Tensor> gradients_of(int n, std::int64_t numel) {
  std::vector<at::Tensor> all;
  for (int i = 0; i < n; ++i) {
    all.push_back(normal_gradients(numel, 0.3)(i, 0));
  }
  return all;
}

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

// Bytes of all members of a step.
inline std::int64_t all_bytes(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t step = 0) {
  std::int64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    const ExchangePlan plan(options, slots, {n, i});
    sum += plan.bytes_between(0, step + 1) - plan.bytes_between(0, step);
  }
  return sum;
}

inline double mean_bytes(
    const ReducerOptions& options, const std::vector<Slot>& slots, int n, std::int64_t step = 0) {
  return static_cast<double>(all_bytes(options, slots, n, step)) / n;
}

}  // namespace abtrain::compress
