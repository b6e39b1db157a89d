#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "kernels/gram_schmidt.h"
#include "ops/gram_schmidt_backends.h"

namespace abtrain::ops {

void gram_schmidt_cuda(
    const at::Tensor& flat,
    const std::vector<RowSet>& sets) {
  const c10::cuda::CUDAGuard guard(flat.device());
  kernels::RowSetList list;
  const auto queue = [&] {
    ABT_CUDA_CHECK(kernels::gram_schmidt(
        flat.mutable_data_ptr<float>(),
        list,
        c10::cuda::getCurrentCUDAStream().stream()));
    list.count = 0;
  };
  for (const RowSet& set : sets) {
    if (list.count == kernels::kMaxRowSets) {
      queue();
    }
    list.sets[list.count++] = {
        set.offset,
        static_cast<std::int32_t>(set.rows),
        static_cast<std::int32_t>(set.length)};
  }
  queue();
}

}  // namespace abtrain::ops
