#include "comm/share.h"

#include <ATen/ops/from_blob.h>

namespace abtrain::comm {

ShareBytes share_over(Communicator& communicator) {
  return [&communicator](void* data, std::size_t bytes) {
    const at::Tensor buffer =
        at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
    communicator.broadcast(buffer, 0, Purpose::Metrics).wait();
  };
}

}  // namespace abtrain::comm
