// How fast each worker trains, for `balance: auto`.
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_options.h"
#include "train/setup.h"

namespace abtrain::train {

// What a step of one worker takes, in seconds.
struct StepCost {
  double alone = 0;        // whatever the batch is: its optimizer, launches of kernels
  double per_example = 0;  // above 0
};

// The batches, in examples, with which all workers take equally long for `examples`
// in all: t = (examples + sum_w alone_w / per_example_w) / sum_w 1 / per_example_w,
// batch_w = (t - alone_w) / per_example_w. A worker whose batch would be below one
// example gets one.
std::vector<double> equally_long_batches(const std::vector<StepCost>& costs, double examples);

// Sets options.balance.speeds, the same in all processes, and logs what becomes of
// the batches. A process that is a worker has the speed of its variable
// ABTRAIN_SPEED. Without any, all take steps of the run's model on its first images
// at the same time, each for itself, with batches of data.batch_size and of a
// quarter of that, each for about a second, or five steps, after a warm-up; nothing
// of this stays, and the speeds are the batches with which a step takes all workers
// equally long. They remain empty, so that batches are equal, where the workers
// are threads, or where no worker takes more than 5 % longer than another one. Without
// `auto`, changes nothing. To be called once the data and the threads of operators are
// set. Collective. Throws Error(Config) if ABTRAIN_SPEED is not a positive number or is
// set for some processes only.
void choose_speeds(
    config::RunOptions& options, const Setup& setup, WorkerHost& host, bool resumes, Log& log);

}  // namespace abtrain::train
