// What the small rivals train: dense networks with as many parameters as
// AB-training stores, in several shapes, or the one in a user's file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "config/run_options.h"
#include "plan/small_shapes.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

struct SmallNetworks {
  plan::SmallShapes shapes;
  std::string missing;  // why there are none, or ""
};
// Those that the request is about; a plan has the first shape only. `read`: the configuration with
// overrides. `ab`: with AB-training, which stores so many `parameters`. An exported model has one
// network, that of `request.small`. Throws Error(Usage) for such a file where the model is none,
// MissingInput, and Config where the file does not fit the data or differs by more than 3 % of
// `parameters`.
SmallNetworks small_networks(
    const std::function<config::RunOptions(const Sets&)>& read, const config::RunOptions& ab,
    std::int64_t parameters, const RivalsRequest& request);

}  // namespace abtrain::sweep
