// Reads the measurements of a finished run, and computes how long the run would take on another
// computer network.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace abtrain::plan {

// summary.json of a run folder. Throws MissingInput if the run has not finished
// successfully, or DamagedData, naming the file.
JsonObject read_summary(const std::string& folder);

// The seconds that a finished run would take on `network`. Uses the compute and decomposition times
// and the bytes that the run recorded; ranks that depend on spectra come from its summary.json.
// Throws MissingInput or DamagedData, naming the file.
double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network);

}  // namespace abtrain::plan
