// The resources that a job of a sweep's batch file requests from Slurm: GPUs, time and memory.
//
// Time. Every point counts like the longest one: its steps, at the speed of the slowest finished
// point of the sweep. Without a finished point, some steps of the point with the most work are
// timed here (plan/compute_time.h); dense steps if its ranks follow from singular values. A job
// gets twice that time and 2 minutes for each of its points, rounded up to a multiple of 5 minutes,
// at least 10 minutes and at most 24 hours: at its limit, a job saves and is requeued. If no time
// is known, as for points that need a GPU on a machine without one, a job gets 24 hours.
//
// Memory, for all workers of a point on one node: for each worker twice what `abtrain plan` shows;
// for each process the program (1 GB, with GPUs 4 GB) and twice the bytes of the images that it
// holds. At least 1.5 times what this process used while it measured the time on CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "sweep/resolve_points.h"

namespace abtrain::sweep {

struct SlurmNeeds {
  bool gpus = false;         // one per worker
  std::int64_t minutes = 0;  // per job; 0: not requested
  std::string minutes_from;  // the source of `minutes`, as a phrase
  std::int64_t gigabytes = 0;
};

struct NeedsRequest {
  std::int64_t points_per_job = 1;
  // The length of these runs as a share of the longest runs that the batch file trains.
  double length = 1;
  bool time = true;  // whether to request minutes
};

// True if a run must have a GPU for each worker: device: cuda or comm: nccl.
bool needs_gpus(const config::RunOptions& options);

// `log` tells what is being measured, and warns if no time is known.
SlurmNeeds slurm_needs(const std::vector<PointRun>& runs, const NeedsRequest& request, Log& log);

}  // namespace abtrain::sweep
