#include "data/batch.h"

#include <ATen/ops/empty.h>

namespace abtrain::data {

Batch empty_batch(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
    const at::TensorOptions& options) {
  return {
      at::empty(
          {count, channels, height, width}, options,
          channels > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous),
      at::empty({count}, options.dtype(at::kLong))};
}

}  // namespace abtrain::data
