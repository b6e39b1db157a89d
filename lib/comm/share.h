// Exchanges small values among all ranks. Collective. Each call throws the errors of the
// communicator's collective.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::comm {

// Gives rank 0's bytes to every rank; back ends need this to find their peers. `data` is read on
// rank 0 and written on the others.
using ShareBytes = std::function<void(void* data, std::size_t bytes)>;

// Returns a function that broadcasts over `communicator`, which must accept CPU tensors (threads,
// MPI) and outlive the function.
ShareBytes share_over(Communicator& communicator);

// Writes the `bytes` bytes at `mine` of each rank to `all`, in rank order.
void gather_bytes(Communicator& communicator, const void* mine, void* all, std::size_t bytes);

// Returns the value of each rank, in rank order.
template <class T>
std::vector<T> gather_values(Communicator& communicator, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  gather_bytes(communicator, &mine, all.data(), sizeof(T));
  return all;
}

}  // namespace abtrain::comm
