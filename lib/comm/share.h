// Gives rank 0's bytes to every rank: a back end needs that to find its peers.
// A call is collective; `data` is read on rank 0 and written on the others.
#pragma once

#include <cstddef>
#include <functional>

#include "comm/communicator.h"

namespace abtrain::comm {

using ShareBytes = std::function<void(void* data, std::size_t bytes)>;

// Shares over a communicator that takes CPU tensors (threads, MPI), which must
// outlive the function. A call throws what broadcast throws.
ShareBytes share_over(Communicator& communicator);

}  // namespace abtrain::comm
