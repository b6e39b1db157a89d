#include "comm/share.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace abtrain::comm {

ShareBytes share_over(Communicator& communicator) {
  return [&communicator](void* data, std::size_t bytes) {
    const at::Tensor buffer =
        at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
    communicator.broadcast(buffer, 0, Purpose::Metrics).wait();
  };
}

std::vector<std::int64_t> gather_numbers(
    Communicator& communicator, const std::vector<std::int64_t>& mine) {
  const auto count = static_cast<std::int64_t>(mine.size());
  const at::Tensor own = at::empty({count}, at::kLong);
  std::ranges::copy(mine, own.mutable_data_ptr<std::int64_t>());
  const at::Tensor all = at::empty({count * communicator.size()}, at::kLong);
  communicator.all_gather(all, own, Purpose::Metrics).wait();
  const auto* data = all.const_data_ptr<std::int64_t>();
  return {data, data + all.numel()};
}

}  // namespace abtrain::comm
