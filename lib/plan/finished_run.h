// Reads what a finished run measured, and computes what it would take on another network.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace abtrain::plan {

// summary.json of a run folder. Throws MissingInput if the run has not finished
// successfully, or DamagedData, naming the file.
JsonObject read_summary(const std::string& folder);

// The seconds that a finished run would take on a network, with the computing and decomposing that
// it measured and the bytes that it metered. Ranks that depend on spectra come from its summary.
// Throws MissingInput or DamagedData, naming the file.
double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network);

}  // namespace abtrain::plan
