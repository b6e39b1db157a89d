// How fast each worker trains, for `balance: auto`.
#pragma once

#include "config/run_options.h"
#include "train/setup.h"

namespace abtrain::train {

// Sets options.balance.speeds, the same in all processes, and logs what becomes of
// the batches. A process that is a worker has the speed of its variable
// ABTRAIN_SPEED. Without any, all take steps of the run's model on its first images
// at the same time, each for itself, for about 1.5 s, or three steps, after a warm-up; nothing of
// this stays. The speeds remain empty, so that batches are equal, where the workers
// are threads, or where no speed is more than 5 % above another. Without `auto`,
// changes nothing. To be called once the data and the threads of operators are set.
// Collective. Throws Error(Config) if ABTRAIN_SPEED is not a positive number or is
// set for some processes only.
void choose_speeds(
    config::RunOptions& options, const Setup& setup, WorkerHost& host, bool resumes, Log& log);

}  // namespace abtrain::train
