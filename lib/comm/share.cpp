#include "comm/share.h"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstring>

namespace abtrain::comm {

// Both functions copy through tensors of their own, because MPI may still write to a buffer after a
// failure.
ShareBytes share_over(Communicator& communicator) {
  return [&communicator](void* data, std::size_t bytes) {
    const at::Tensor buffer = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
    std::memcpy(buffer.mutable_data_ptr(), data, bytes);
    communicator.broadcast(buffer, 0, Purpose::Metrics).wait();
    std::memcpy(data, buffer.const_data_ptr(), bytes);
  };
}

void gather_bytes(Communicator& communicator, const void* mine, void* all, std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  const at::Tensor own = at::empty({count}, at::kByte);
  const at::Tensor gathered = at::empty({count * communicator.size()}, at::kByte);
  std::memcpy(own.mutable_data_ptr(), mine, bytes);
  communicator.all_gather(gathered, own, Purpose::Metrics).wait();
  std::memcpy(all, gathered.const_data_ptr(), gathered.nbytes());
}

}  // namespace abtrain::comm
