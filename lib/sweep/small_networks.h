// The networks of the small rivals: dense networks with as many parameters as AB-training stores,
// in several shapes, or the network in a user's file.
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
// Returns the networks for a request; in a plan, only the first shape. `read`: returns the
// configuration with overrides. `ab`: the configuration with AB-training, which stores `parameters`
// parameters. An exported model has only the network in the file `request.small`. Throws
// Error(Usage) for such a file if the model is not exported; MissingInput; Config if its network
// does not fit the data or differs by more than 3 % from `parameters`.
SmallNetworks small_networks(
    const std::function<config::RunOptions(const Sets&)>& read, const config::RunOptions& ab,
    std::int64_t parameters, const RivalsRequest& request);

}  // namespace abtrain::sweep
