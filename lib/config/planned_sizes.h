// The properties of a configuration's model that decide its traffic and time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "config/run_options.h"
#include "methods/traffic_plan.h"
#include "nn/model.h"

namespace abtrain::config {

// The layers with their ranks. `estimated`: the rank rule is `budget`, and every layer is shown at
// the same ratio, because the weights' singular values (spectra) decide how the budget is divided.
struct PlannedSizes {
  methods::ModelSizes sizes;
  bool estimated = false;
  // Parameters of the stored model, which holds the factors of factored layers; with a budget, as
  // many as it allows.
  std::int64_t stored = 0;
};
// The number of parameters that are not frozen, with factors in place of factored weights.
std::int64_t trained_parameters(const PlannedSizes& planned);
// The value of method.rank.multiple. `auto`: 8 for bf16 on a GPU, because tensor cores take
// operands with sides of this multiple, and cuDNN copies other operands into larger ones; else 1.
std::int64_t rank_multiple(const RunOptions& options, bool on_gpu);
// method.rank with rank_multiple() for the device that the run asks for.
linalg::RankRule planned_rule(const RunOptions& options);
// Returns the sizes with the ranks for the device that the run asks for, even if it is not present.
// `ranks`: known ranks by layer name. Without them, returns nullopt if the ranks depend on spectra
// (rules sigma and energy). Throws Error(Config).
std::optional<PlannedSizes> model_sizes(
    const RunOptions& options, const data::ExampleShape& shape,
    const std::map<std::string, std::int64_t>* ranks = nullptr);

}  // namespace abtrain::config
