// Gives rank 0's bytes to every rank: what a back end needs to find its peers.
// A call is collective; `data` is read on rank 0 and written on the others.
#pragma once

#include <cstddef>
#include <functional>

#include "comm/communicator.h"

namespace abtrain::comm {

using Share = std::function<void(void* data, std::size_t bytes)>;

// Over a communicator that takes CPU tensors (threads, MPI). The communicator
// outlives it. Throws what broadcast throws.
Share share_over(Communicator& communicator);

}  // namespace abtrain::comm
