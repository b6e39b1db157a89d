// What a step computes, measured on this machine: a few real steps on random
// images of the data set's shape, the workers as threads.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_options.h"
#include "data/dataset.h"
#include "methods/traffic_plan.h"

namespace abtrain::plan {

// Seconds, medians over steps and workers.
struct ComputeTime {
  double dense = 0;      // a dense step
  double ab = 0;         // a step of the AB phase, of the slower role
  double decompose = 0;  // of all layers, by `workers` between them
  int workers = 1;       // that computed at the same time
  std::string how;       // in words, for people
};

// `sizes`: as planned for the configuration, with ranks. `workers`: how many
// share this machine. Not measured: reading and decoding image files; of a
// single worker the coding of gradients, and role A. A minute at most where a
// dense step takes no more than 5 s.
ComputeTime measure_compute(
    const config::RunOptions& options,
    const data::DatasetShape& shape,
    const methods::ModelSizes& sizes,
    int workers);

}  // namespace abtrain::plan
