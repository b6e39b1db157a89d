#include "data/batch.h"

#include <ATen/ops/empty.h>

namespace abtrain::data {

Batch empty_batch(
    std::int64_t count,
    std::int64_t channels,
    std::int64_t height,
    std::int64_t width) {
  return {
      at::empty(
          {count, channels, height, width},
          at::kFloat,
          channels > 1 ? at::MemoryFormat::ChannelsLast
                       : at::MemoryFormat::Contiguous),
      at::empty({count}, at::kLong)};
}

}  // namespace abtrain::data
