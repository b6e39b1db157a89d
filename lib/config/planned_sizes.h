// The properties of a configuration's model that decide its traffic and time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
// method.rank.multiple. auto: 8 for bf16 on a GPU, whose tensor cores take operands with such
// sides, while cuDNN copies others into larger ones; else 1.
std::int64_t rank_multiple(const RunOptions& options, bool on_gpu);
// Auto ranks are those of the device that the run asks for, be it here or not.
// Empty if only the spectra can tell (rules sigma and energy) and no `ranks`,
// by layer name, are given. Throws Error(Config).
std::optional<PlannedSizes> model_sizes(
    const RunOptions& options, const data::ExampleShape& shape,
    const std::map<std::string, std::int64_t>* ranks = nullptr);
// The sizes that the model may have: one element if they are known before training. If only the
// spectra can tell, each layer at the least rank that its rule can give it, at the largest one
// with which it is factored, and, where the rule may leave it dense, dense. Whatever
// grows with the ranks lies between the figures of these. Throws Error(Config).
std::vector<PlannedSizes> possible_sizes(
    const RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::config
