// A run's final report: summary.json, and the same as a readable table.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "config/run_options.h"
#include "train/train_inputs.h"

namespace abtrain::train {

// Keys and units as in docs/report.md: accuracy 0..1, bytes sent per worker, seconds of wall time,
// means over the workers. `hosts`: the host of each worker.
nlohmann::ordered_json summarize(
    const config::RunOptions& options, const TrainResult& result,
    const std::vector<std::string>& hosts);

// Returns the table. With `names_folder`, its last row names the run folder, `folder`. Throws
// Error(DamagedData) if `summary` is not a summary.
std::string report_table(
    const config::RunOptions& options, const nlohmann::ordered_json& summary,
    const std::string& folder, bool names_folder = true);

// Bytes that a worker of dense data parallel training sends in `steps` steps
// (mean over the workers), with elements of `element_size` bytes.
double data_parallel_bytes(
    std::int64_t parameters, std::int64_t steps, std::int64_t workers, std::int64_t element_size);

// A share of data_parallel_bytes() as text: "16.9 %", with more digits if it is small: "0.037 %".
std::string percent_of_data_parallel(double share);

}  // namespace abtrain::train
