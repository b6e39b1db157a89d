#include "ops/gram_schmidt.h"

#include <limits>

#include "base/error.h"
#include "device/tensor_text.h"
#include "kernels/gram_schmidt.h"
#include "ops/cpu/gram_schmidt.h"
#include "ops/launch.h"

namespace abtrain::ops {

namespace {

void gram_schmidt_on_gpu(
    const at::Tensor& flat,
    const std::vector<RowSet>& sets) {
  kernels::RowSetList list;
  const auto queue = [&] {
    launch("gram_schmidt", flat.device(), [&](void* stream) {
      return kernels::gram_schmidt(
          flat.mutable_data_ptr<float>(), list, stream);
    });
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

}  // namespace

void gram_schmidt(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  ABT_ASSERT(
      flat.dim() == 1 && flat.is_contiguous() &&
          flat.scalar_type() == at::kFloat,
      "gram_schmidt: expected a flat fp32 tensor, got {}{}",
      flat.scalar_type(),
      flat.sizes());
  for (const RowSet& set : sets) {
    ABT_ASSERT(
        set.rows >= 0 && set.rows <= set.length && set.offset >= 0 &&
            set.length <= std::numeric_limits<std::int32_t>::max() &&
            set.offset + set.rows * set.length <= flat.numel(),
        "gram_schmidt: expected rows <= length within the tensor, got {} rows "
        "of {} from offset {} in a tensor of {}",
        set.rows,
        set.length,
        set.offset,
        flat.sizes());
  }
  if (flat.is_cuda()) {
    gram_schmidt_on_gpu(flat, sets);
  } else {
    gram_schmidt_cpu(flat, sets);
  }
}

}  // namespace abtrain::ops
