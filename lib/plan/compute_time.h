// The compute time of a step, measured on this machine: a few real steps on random examples of the
// data set's shape, with threads as workers.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_options.h"
#include "data/dataset.h"
#include "methods/traffic_plan.h"

namespace abtrain::plan {

// Seconds. Step times are the median over the steps of the slowest worker. A role is the factor, A
// or B, that a worker trains in the AB phase.
struct ComputeTime {
  double dense = 0;      // a dense step
  double ab = 0;         // a step of the AB phase, for the slower role
  double decompose = 0;  // all layers, divided among `workers`
  int workers = 1;       // workers that computed at the same time
  std::string how;       // a description for people
  std::string warning = {};  // why the times are not reliable; "" if they are
};

// `sizes`: as planned for the configuration, with ranks. `workers`: the number of workers that
// share this machine. Does not measure reading and decoding of image files nor, with a single
// worker, gradient compression and role A. Takes at most a minute if a dense step takes up to 5 s.
ComputeTime measure_compute(
    const config::RunOptions& options, const data::DatasetShape& shape,
    const methods::ModelSizes& sizes, int workers);

}  // namespace abtrain::plan
