// Who makes the others wait.
//
// A worker's seconds in collectives hold two things: what the network takes, and
// the wait for workers that come later. What a worker does itself (compute,
// decompose, wait for its batches) is all the rest of its time. So a worker waits
// for the difference between the slowest worker's own seconds and its own, unless
// it has not been in collectives for so long: methods that rarely synchronize
// wait later. Where all have trained equally long, as in a whole run, this says
// that the worker that is least in collectives waits for nobody.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/ledger.h"

namespace abtrain::train {

struct Waiting {
  std::vector<double> seconds;  // of each worker; part of its `communication`
  int slowest = 0;              // the worker with the most seconds of its own
  // The mean wait of the others, over the time of the slowest, which hardly
  // waits: how much of the run the slowest worker costs. 0 for one worker.
  double share = 0;
};

// `spent`: of all workers, at least one, in the same steps.
Waiting find_waiting(const std::vector<TimeSplit>& spent);

// {"compute": ..., "svd": ..., "data": ..., "waiting": ..., "communication":
// ...}: all seconds of worker `worker`, with the wait taken out of the
// communication.
nlohmann::ordered_json times_json(
    const std::vector<TimeSplit>& spent, const Waiting& waiting, std::size_t worker);

// Looks for a slow worker while a run goes on, in windows of at least kSteps
// steps and `seconds` seconds; a worker must be the slow one in two of them in a
// row. What came before the first call is warm-up. Decompositions do not count.
class SlowWatch {
 public:
  static constexpr std::int64_t kSteps = 20;
  static constexpr double kShare = 0.1;

  explicit SlowWatch(double seconds) : seconds_(seconds) {}
  // A warning, once for each worker that makes the others wait for more than
  // kShare of such a window. `hosts`: in rank order, or empty.
  std::optional<std::string> look(const comm::AllSpent& now, const std::vector<std::string>& hosts);

 private:
  double seconds_;
  comm::AllSpent begin_;  // of the window
  int suspect_ = -1;      // slow in the last window
  std::set<int> named_;
};

}  // namespace abtrain::train
