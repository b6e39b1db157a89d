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

// The layers with their ranks. `estimated`: the rule is `budget`, and every
// layer is shown at the same ratio, since only the spectra can tell how it will
// be divided.
struct PlannedSizes {
  methods::ModelSizes sizes;
  bool estimated = false;
  // Parameters of the model as it is stored, factors where factored; of a
  // budget, all that it allows.
  std::int64_t stored = 0;
};
// Parameters of a model with these ranks that are not frozen, factors where factored.
std::int64_t trained_parameters(const PlannedSizes& planned);
// method.rank.multiple. auto: 8 for bf16 on a GPU, whose tensor cores take operands with such
// sides, while cuDNN copies others into larger ones; else 1.
std::int64_t rank_multiple(const RunOptions& options, bool on_gpu);
// method.rank with the multiple of the device that the run asks for.
linalg::RankRule planned_rule(const RunOptions& options);
// Auto ranks are those of the device that the run asks for, be it here or not.
// Empty if only the spectra can tell (rules sigma and energy) and no `ranks`,
// by layer name, are given. Throws Error(Config).
std::optional<PlannedSizes> model_sizes(
    const RunOptions& options, const data::ExampleShape& shape,
    const std::map<std::string, std::int64_t>* ranks = nullptr);

}  // namespace abtrain::config
