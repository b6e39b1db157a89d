// The training methods by name: what the rest of a run must know about each one before it trains.
// To add a method, write a class on Method in a folder of its own, with its MethodKind, and add
// that to the list in method_kind.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/conflict.h"
#include "base/warmup.h"
#include "methods/method.h"
#include "methods/timeline.h"
#include "methods/traffic_plan.h"

namespace abtrain::methods {

struct MethodKind {
  const char* name;
  std::unique_ptr<Method> (*make)(const MethodContext& context);
  Timeline (*timeline)(const MethodOptions& options, const RunLength& run);
  TrafficPlan (*traffic)(
      const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
      const StepTraffic& beside);
  // The rows of `plan` that show this traffic.
  std::vector<TrafficRow> (*traffic_rows)(const Timeline& timeline);

  // Adds the keys that only this method has; null: there are none.
  void (*add_fields)(Fields& fields, MethodOptions& options) = nullptr;
  // The meaning of `auto` in method.outer.name.
  OuterRule outer = OuterRule::Average;
  // Weights are factored, by method.rank and method.keep_dense.
  bool factors_weights = false;
  // Not only the optimizer changes weights: they are also averaged or decomposed.
  bool changes_weights = true;
  // The number of copies of its parameters that a worker keeps beyond those of data-parallel
  // training; null: none.
  double (*copies)(const MethodOptions& options) = nullptr;
  // Adds the conflicts among the keys that the method uses; null: there are
  // none.
  void (*check)(const MethodSetup& setup, const StatedLength& length, Conflicts& out) = nullptr;
  // Throws Error(Config) if the method cannot train a run of this length, or a
  // model with these dense parameters; null: it trains any.
  void (*check_run)(const MethodOptions& options, const RunLength& run, const nn::Model& model) =
      nullptr;
  // Settings that are allowed but hardly intended, in a run that passed
  // check_run(): one sentence each, beginning with its key; null: there are
  // none.
  std::vector<std::string> (*notes)(const MethodSetup& setup, const RunLength& run) = nullptr;
  // The method's lines in `plan`; null: none.
  std::string (*plan_text)(const MethodSetup& setup, const RunLength& run) = nullptr;
};

// Makes an M, for MethodKind::make.
template <class M>
std::unique_ptr<Method> make(const MethodContext& context) {
  return std::make_unique<M>(context);
}

extern const MethodKind kAb, kDdp, kLocalSgd, kDiloco;

// Throws Error(Config) for an unknown name.
const MethodKind& kind_of(const MethodOptions& options);

// Computes the bytes that worker `rank` will send.
TrafficPlan plan_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside = {});

}  // namespace abtrain::methods
