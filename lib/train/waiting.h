// Finds the worker that makes the others wait.
//
// A worker's seconds in collectives have two parts: the time of the network, and the wait for
// workers that come later. The rest of its time is its own work (compute, decompose, wait for its
// batches). So a worker's wait is the slowest worker's seconds of own work minus its own, but at
// most its seconds in collectives: methods that rarely synchronize wait later. If all workers have
// trained equally long, as in a whole run, the worker with the least time in collectives waits for
// nobody.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/ledger.h"

namespace abtrain::train {

struct Waiting {
  std::vector<double> seconds;  // each worker's wait; part of its `communication`
  int slowest = 0;              // the worker with the most seconds of own work
  // The mean wait of the other workers, divided by the time of the slowest worker, which hardly
  // waits: the share of the run that the slowest worker costs. 0 for one worker.
  double share = 0;
};

// `spent`: the times of all workers, at least one, over the same steps.
Waiting find_waiting(const std::vector<TimeSplit>& spent);

// {"compute": ..., "svd": ..., "data": ..., "waiting": ..., "communication":
// ...}: all seconds of worker `worker`, with the wait taken out of the
// communication.
nlohmann::ordered_json times_json(
    const std::vector<TimeSplit>& spent, const Waiting& waiting, std::size_t worker);

// Looks for a slow worker during a run, in windows of at least kSteps steps and `seconds` seconds.
// A worker must be the slow one in two consecutive windows. The time before the first call is
// warm-up. Decompositions do not count.
class SlowWatch {
 public:
  static constexpr std::int64_t kSteps = 20;
  static constexpr double kShare = 0.1;

  explicit SlowWatch(double seconds) : seconds_(seconds) {}
  // Returns a warning, once for each worker that makes the others wait for more than kShare of a
  // window. `hosts`: in rank order, or empty.
  std::optional<std::string> look(const comm::AllSpent& now, const std::vector<std::string>& hosts);

 private:
  double seconds_;
  comm::AllSpent begin_;  // start of the window
  int suspect_ = -1;      // slow in the last window
  std::set<int> named_;   // workers that a warning has named
};

}  // namespace abtrain::train
