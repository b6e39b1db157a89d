// Finds a dense network with as many parameters as another model, such as a
// factored one, so that the two can be compared.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::plan {

// The number of parameters that the dense network should have.
struct SizeTarget {
  std::int64_t parameters = 0;
  std::string source;  // "runs/my/summary.json", "the budget of my.yaml"
};
// The parameters that the final model of a finished run stores: both factors of each factored
// weight and all that stays dense. Throws MissingInput or DamagedData, naming the file.
SizeTarget size_of_run(const std::string& folder);
// The parameters that the model of this configuration will store. `name`: its name in messages.
// Throws Error(Config) if the number depends on spectra.
SizeTarget planned_size(const config::RunOptions& options, const std::string& name);

// The number of parameters of a model whose layers are scaled by `width`. Width 0 gives one channel
// or feature everywhere, or one for each attention head.
using ParametersAt = std::function<std::int64_t(double width)>;
struct NearestWidth {
  double width = 0;
  bool up = false;              // `width` is the smallest with more parameters than the target
  std::int64_t parameters = 0;  // at this width
};
// The width at which the number of parameters of the model `name` is as close to `target` as whole
// numbers of channels or features allow. The number is never more than 1 % above `target`; of two
// equally close numbers, it is the smaller. `kept`: for messages, what does not depend on the
// width. Throws Error(Config) if the target is out of reach.
NearestWidth nearest_width(
    const ParametersAt& parameters, const std::string& name, std::int64_t target,
    const std::string& kept = "");

struct SameSize {
  config::RunOptions options;  // the given options with the width that was found
  std::int64_t parameters = 0;
  std::vector<std::string> overrides;  // "model.width=0.0815"
};
// Finds the `model.width` at which the dense model of `options` has `target` parameters, as
// nearest_width() does. Throws Error(Config) if `model.width` changes nothing, if the target is out
// of reach, or if the network starts from a file.
SameSize same_size(const config::RunOptions& options, std::int64_t target);

// The result as text, and as JSON {"target", "source", "parameters", "difference", "set"}:
// "difference" is the relative difference of the parameters from the target, "set" the overrides.
std::string same_size_text(const SameSize& found, const SizeTarget& target);
nlohmann::ordered_json same_size_json(const SameSize& found, const SizeTarget& target);

}  // namespace abtrain::plan
