// A plan compared with what a finished run measured.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace abtrain::plan {

// summary.json of a run folder. Throws MissingInput if the run has not finished
// successfully, or DamagedData, naming the file.
JsonObject read_summary(const std::string& folder);

struct PlanComparison {
  struct Row {
    std::string name;  // "bytes per worker", "ms per step", ...
    std::string key;   // bytes_per_worker, ms_per_step, ...
    double planned = 0;
    double measured = 0;
  };
  std::string run;  // folder, method, workers and steps of the run
  std::string network;
  std::vector<Row> rows;
};

// `folder`: a run that finished successfully. If only the spectra can tell the
// ranks, they are taken from that run. Throws MissingInput or DamagedData,
// naming the file.
PlanComparison compare_with_run(
    const config::RunOptions& options, const std::string& folder, const TimeRequest& request);

// What a finished run would take on a network: computing and decomposing as it
// measured them, and its bytes as it metered them. Seconds. Throws as above.
double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network);

// A table for people; {"run", "network", KEY: {"planned", "measured",
// "ratio"}}.
std::string comparison_text(const PlanComparison& plan);
nlohmann::ordered_json comparison_json(const PlanComparison& plan);

}  // namespace abtrain::plan
