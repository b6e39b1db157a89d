// Small values that all ranks exchange. Collective; a call throws what the
// communicator's collective throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::comm {

// Gives rank 0's bytes to every rank: a back end needs that to find its peers.
// `data` is read on rank 0 and written on the others.
using ShareBytes = std::function<void(void* data, std::size_t bytes)>;

// Shares over a communicator that takes CPU tensors (threads, MPI), which must
// outlive the function.
ShareBytes share_over(Communicator& communicator);

// Returns the values of all ranks, one rank after the other. Every rank must pass
// the same number of values.
std::vector<std::int64_t> gather_numbers(
    Communicator& communicator, const std::vector<std::int64_t>& mine);

}  // namespace abtrain::comm
