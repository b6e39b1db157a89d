// The training methods (ab, ddp, local-sgd, diloco). A MethodKind says what the rest of the program
// must know before a run trains. To add a method, derive a class from Method in a folder of its
// own, define its MethodKind, and list that in method_kind.cpp.
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
  // The rows of `abtrain plan` that show this traffic.
  std::vector<TrafficRow> (*traffic_rows)(const Timeline& timeline);

  // Adds the configuration keys that only this method has; null: there are none.
  void (*add_fields)(Fields& fields, MethodOptions& options) = nullptr;
  // The rule for which `method.outer.name: auto` stands.
  OuterRule outer = OuterRule::Average;
  // The method factors weights, except those in method.keep_dense, at ranks by method.rank.
  bool factors_weights = false;
  // Besides the optimizer, the method itself changes weights, by averaging or decomposing them.
  bool changes_weights = true;
  // The number of copies of its parameters that a worker keeps beyond those of data-parallel
  // training; null: none.
  double (*copies)(const MethodOptions& options) = nullptr;
  // Adds to `out` the conflicts among keys that the method uses; null: none can occur.
  void (*check)(const MethodSetup& setup, const StatedLength& length, Conflicts& out) = nullptr;
  // Throws Error(Config) if the method cannot train a run of this length, or a model with these
  // dense parameters; null: it can train any.
  void (*check_run)(const MethodOptions& options, const RunLength& run, const nn::Model& model) =
      nullptr;
  // Returns a sentence, beginning with the key, for each setting that is allowed but hardly
  // intended in a run that passed check_run(); null: there are none.
  std::vector<std::string> (*notes)(const MethodSetup& setup, const RunLength& run) = nullptr;
  // The method's lines in `abtrain plan`; null: none.
  std::string (*plan_text)(const MethodSetup& setup, const RunLength& run) = nullptr;
};

// The function MethodKind::make for a method of class M.
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
