// The optimizers by name: how each is made, and what the rest of a run must know about it. To add
// one, derive a class from Optimizer in a file of its own, with an OptimizerKind, and add that to
// the list in optimizer_kind.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/conflict.h"
#include "base/warmup.h"
#include "optim/optim_options.h"
#include "optim/optimizer.h"

namespace abtrain::optim {

// The term that an optimizer adds to the loss.
enum class Penalty {
  None,
  Squares,    // weight_decay / 2 times the sum of all x^2
  Magnitudes  // l1 times the sum of all |x|, which drives weights to 0
};

struct OptimizerKind {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
  Penalty penalty = Penalty::None;
  // The optimizer keeps sums that are valid only if nothing else changes the weights.
  bool owns_weights = false;
  // The weights are a starting point minus the scaled sum of all gradients times the current rate
  // (ops/adagrad.h), so a rate that falls to 0 would return them to the start.
  bool dual_averaging = false;
  // Conflicts among the optimizer's own keys; null: there are none.
  Conflicts (*check)(const OptimizerOptions& options) = nullptr;
};

// Makes an optimizer of class O, for OptimizerKind::make.
template <class O>
std::unique_ptr<Optimizer> make(const OptimizerOptions& options) {
  return std::make_unique<O>(options);
}

extern const OptimizerKind kSgd, kAdamw, kMuon, kQcmdAdagrad, kQrdaAdagrad;

std::vector<std::string> optimizer_names();

// Throws Error(Config) for an unknown name.
const OptimizerKind& kind_of(const OptimizerOptions& options);

// Whether weights can become exactly 0.
bool makes_sparse(const OptimizerOptions& options);

// The OptimizerKind::check of optimizers with momentum.
Conflicts check_nesterov(const OptimizerOptions& options);

// Conflicts of the sections `optimizer:` and `schedule:`, for a run of this length.
Conflicts check(
    const OptimizerOptions& options, const ScheduleOptions& schedule, const StatedLength& length);

}  // namespace abtrain::optim
