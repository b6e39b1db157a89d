#include "data/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <deque>
#include <mutex>
#include <utility>

namespace abtrain::data {
namespace {

constexpr std::size_t most_idle = 2;

}  // namespace

Batch empty_batch(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
    const at::TensorOptions& options) {
  return {
      at::empty(
          {count, channels, height, width}, options,
          channels > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous),
      at::empty({count}, options.dtype(at::kLong))};
}

struct BatchMemory::Idle {
  std::mutex mutex;
  std::deque<at::Tensor> pieces;
};

BatchMemory::BatchMemory() : idle_(std::make_shared<Idle>()) {}

Batch BatchMemory::take(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Batch batch = {{}, at::empty({count}, at::kLong)};
  at::Tensor piece;
  {
    const std::lock_guard lock(idle_->mutex);
    for (auto it = idle_->pieces.begin(); it != idle_->pieces.end(); ++it) {
      if (it->size(0) == count && it->size(1) == channels && it->size(2) == height &&
          it->size(3) == width) {
        piece = std::move(*it);
        idle_->pieces.erase(it);
        break;
      }
    }
  }
  if (!piece.defined()) {
    piece = empty_batch(count, channels, height, width).inputs;
  }
  // A second tensor on the same memory; its destruction returns the memory.
  batch.inputs = at::from_blob(
      piece.data_ptr<float>(), piece.sizes(), piece.strides(),
      [piece, idle = idle_](void*) {
        const std::lock_guard lock(idle->mutex);
        idle->pieces.push_back(piece);
        if (idle->pieces.size() > most_idle) {
          idle->pieces.pop_front();
        }
      },
      piece.options());
  return batch;
}

}  // namespace abtrain::data
