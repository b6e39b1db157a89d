// Finished runs beside each other: time to a stated accuracy first, what
// explains it after that (`abtrain report`).
//
// Runs that differ in nothing but seed, name and output are repeats of one
// setting and make one row. A setting's time to the target is the median over
// its repeats, where one that has missed the target counts as infinite: if half
// of them or more have missed it, the setting has not reached it.
//
// Seconds are those of training, the clock stopped in evaluations and
// checkpoints; bytes are sent bytes: of worker 0 up to an evaluation, means
// over the workers of whole runs. Errors: MissingInput for a folder or file
// that is not there, DamagedData (a LocatedError, as file:line: what is wrong)
// for one that cannot be read as what it should be.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::sweep {

// The first evaluation at or above the target.
struct Arrival {
  double seconds = 0;
  double step = 0;
  double bytes = 0;
};

// What a run folder holds.
struct RunRecord {
  std::string folder;
  std::string name;
  std::uint64_t seed = 0;
  std::string setting;  // its config.yaml without name, seed and output
  std::optional<Arrival> arrival;
  std::optional<double> vnmse;  // mean over the evaluations of the estimate
  // Of summary.json; a run that failed or was stopped has none.
  bool finished = false;
  double accuracy = 0;
  double ms_per_step = 0;
  double communicating = 0;  // share of the training time
  double sent_bits = 0;      // by a worker, a step and dense parameter
  double bytes = 0;
  std::optional<double> encode_ms;  // a step
  std::optional<double> decode_ms;
};

// `target`: an accuracy, 0 to 1; none: nothing arrives.
RunRecord read_run(const std::string& folder, std::optional<double> target);

// The run folders among `paths`, each a run folder or a folder of such.
std::vector<std::string> find_runs(const std::vector<std::string>& paths);

// Repeats of one setting, in the order of their seeds.
struct Setting {
  std::string name;  // of the runs, without the seed
  std::vector<RunRecord> runs;
  std::size_t arrived = 0;  // of them, at the target
  // Medians; infinite where the target was not reached.
  double seconds = std::numeric_limits<double>::infinity();
  double steps = std::numeric_limits<double>::infinity();
  double bytes = std::numeric_limits<double>::infinity();
};

// Sorted by time to the target, then by accuracy; unfinished ones last.
std::vector<Setting> group_runs(std::vector<RunRecord> runs);

// Of at least one value; may be infinite.
double median(std::vector<double> values);

// For people, and the same figures for machines.
std::string comparison_table(
    const std::vector<Setting>& settings,
    std::optional<double> target);
nlohmann::ordered_json comparison_json(
    const std::vector<Setting>& settings,
    std::optional<double> target);

}  // namespace abtrain::sweep
