// Measures how fast each worker trains, for `balance: auto`, which gives slower workers smaller
// batches.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/run_options.h"
#include "train/setup.h"

namespace abtrain::train {

// The cost of one worker's step, in seconds.
struct StepCost {
  double alone = 0;        // independent of the batch size: optimizer, kernel launches
  double per_example = 0;  // above 0
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepCost, alone, per_example)

// Returns the batch sizes, `examples` in all, with which all workers take equally long:
//   t = (examples + sum_w alone_w / per_example_w) / sum_w 1 / per_example_w
//   batch_w = (t - alone_w) / per_example_w
// A batch that would be below one example becomes one.
std::vector<double> equally_long_batches(const std::vector<StepCost>& costs, double examples);

// For `balance: auto` with workers in several processes, sets options.balance.speeds
// to the same values in all of them; otherwise changes nothing. Logs the resulting
// batches unless balancing is off.
//
// If ABTRAIN_SPEED is set, each process takes its worker's speed from it. Otherwise all workers are
// measured at the same time, each on its own. After a warm-up they train the run's model on its
// first images, with batches of data.batch_size and of a quarter of that, for about a second (at
// least five steps) each. Nothing of this training is kept. The speeds are then the batch sizes
// with which a step takes all workers equally long. They stay empty, so that batches are equal, if
// no worker takes more than 5 % longer than another.
//
// Collective; call it once the data and LibTorch's number of threads are set. Throws
// Error(Config) if ABTRAIN_SPEED is not a positive number, or is set in only some
// processes.
void choose_speeds(
    config::RunOptions& options, const Setup& setup, WorkerHost& host, bool resumes, Log& log);

// The options as a checkpoint records them. With `balance: auto`, they include the batch sizes of
// its steps, because these were the weights of the averages.
config::RunOptions with_batches(const config::RunOptions& options);

}  // namespace abtrain::train
