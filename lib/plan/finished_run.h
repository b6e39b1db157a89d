// Reads what a finished run measured, and computes what it would take on another network.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace abtrain::plan {

// summary.json of a run folder. Throws MissingInput if the run has not finished
// successfully, or DamagedData, naming the file.
JsonObject read_summary(const std::string& folder);

// Seconds that a finished run would take on a network: computing and decomposing as the run
// measured them, and its bytes as it metered them. If the ranks depend on spectra, uses those of
// the run. Throws MissingInput or DamagedData, naming the file.
double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network);

}  // namespace abtrain::plan
