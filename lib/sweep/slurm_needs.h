// What a job of a sweep's batch file asks Slurm for: GPUs, time and memory.
//
// Time. A finished point of the sweep says how long a step takes; of several, the slowest one
// counts, for the point with the most steps. Without one, the point with the most work is timed
// here for some steps (plan/compute_time.h), dense ones if its ranks follow from the spectra. A
// job gets twice that time and 2 minutes per point, rounded up to 5 minutes, at least 10 minutes
// and at most 24 hours: at its limit, a job saves and is requeued. Where no time is known, the
// points need a GPU and this machine has none, for example, it is 24 hours.
//
// Memory, of all workers of a point on one node: for each worker twice what `abtrain plan` shows,
// for each process the program (1 GB, with GPUs 4 GB) and twice the bytes of the images that it
// holds; at least 1.5 times what this process took while it measured the time on CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "sweep/resolve_points.h"

namespace abtrain::sweep {

struct SlurmNeeds {
  bool gpus = false;         // one per worker
  std::int64_t minutes = 0;  // of a job; 0: not asked for
  std::string minutes_from;  // where they come from, as a phrase
  std::int64_t gigabytes = 0;
};

struct NeedsRequest {
  std::int64_t points_per_job = 1;
  // The length of these runs as a share of the longest that the batch file trains.
  double length = 1;
  bool time = true;  // whether minutes are asked for
};

// Whether a run must have a GPU for each worker: device: cuda or comm: nccl.
bool needs_gpus(const config::RunOptions& options);

// `log` says what is being measured, and warns where no time is known.
SlurmNeeds slurm_needs(const std::vector<PointRun>& runs, const NeedsRequest& request, Log& log);

}  // namespace abtrain::sweep
