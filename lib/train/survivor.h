// The remains of a run that has lost a worker: the states of the surviving workers, in memory. The
// survivors form a new world, share their states
//   Inheritance left{*trainer.survive(), loss};  // of the lost world
//   share_states(world, left);                   // in the new one
// and continue with a new Trainer, as from a checkpoint saved by more workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "state/archive.h"
#include "train/workers/worker_host.h"

namespace abtrain::train {

// The facts about a worker's state that the other workers need.
struct Standing {
  std::int64_t steps = 0;      // updates applied to the worker's parameters
  std::int64_t agreed = 0;     // steps at its last synchronization (Method::agreed_after)
  std::int64_t group = 0;      // equal for workers that held the same state
  std::int64_t run_steps = 0;  // length of the run
  std::int64_t losses = 0;     // how often it has continued after a loss of workers
};

// The state's tensors are those of the worker's model and optimizer, which must
// not be trained any further.
struct Survivor {
  Standing progress;
  state::State state = {};
};

struct Inheritance {
  Survivor own;
  Loss loss;
  // Set by share_states(): the states, one per group; the most updates that one of them contains;
  // and Standing::run_steps and losses, which they have in common.
  std::vector<state::State> states = {};
  std::int64_t steps = 0;
  std::int64_t run_steps = 0;
  std::int64_t losses = 0;
};

// Collective. Sets all members of `inheritance` but `own` and `loss`, to the same values on every
// worker. Only workers that completed the latest synchronization of any worker contribute;
// continuing after a loss counts as a synchronization. That synchronization includes all that the
// other workers have trained. From each group, takes the state of the worker with the most steps.
// The bytes are not counted as traffic.
void share_states(comm::Communicator& world, Inheritance& inheritance);

}  // namespace abtrain::train
