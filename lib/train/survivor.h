// What is left of a run when it loses a worker: the states of the others, in
// memory. Those that are left form a new world and share them
//   Inheritance left{*trainer.survive(), loss};  // of the lost world
//   share_states(world, left);                   // in the new one
// and a new Trainer continues from them, as from a checkpoint of another number
// of workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "state/archive.h"
#include "train/workers/worker_host.h"

namespace abtrain::train {

// What the others must know of a worker's state.
struct Standing {
  std::int64_t steps = 0;   // that its parameters have seen
  std::int64_t agreed = 0;  // Method::agreed_after
  std::int64_t group = 0;   // the same for workers that held one state
  std::int64_t run_steps = 0;
  std::int64_t losses = 0;  // that the worker had gone on from
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
  // By share_states(): the states, one per group, the largest number of steps
  // that any of them has seen, and what else they have in common.
  std::vector<state::State> states = {};
  std::int64_t steps = 0;
  std::int64_t run_steps = 0;
  std::int64_t losses = 0;
};

// Collective. Sets all members of `inheritance` but `own` and `loss`, to the same
// values on every worker. Only workers that completed the latest synchronization
// that any of them completed contribute; having continued after a loss counts as
// one. A worker that lacks it has nothing that the others do not have. From each
// group, the state of the worker with the most steps is taken. The bytes are not
// counted as traffic.
void share_states(comm::Communicator& world, Inheritance& inheritance);

}  // namespace abtrain::train
