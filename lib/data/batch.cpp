#include "data/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
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
  at::Tensor piece;
  {
    const std::lock_guard lock(idle_->mutex);
    const std::array sizes = {count, channels, height, width};
    const auto fits = std::ranges::find_if(
        idle_->pieces, [&](const at::Tensor& idle) { return idle.sizes().equals(sizes); });
    if (fits != idle_->pieces.end()) {
      piece = std::move(*fits);
      idle_->pieces.erase(fits);
    }
  }
  if (!piece.defined()) {
    piece = empty_batch(count, channels, height, width).inputs;
  }
  // A second tensor on the same memory; its destruction returns the memory.
  at::Tensor inputs = at::from_blob(
      piece.data_ptr<float>(), piece.sizes(), piece.strides(),
      [piece, idle = idle_](void*) {
        const std::lock_guard lock(idle->mutex);
        idle->pieces.push_back(piece);
        if (idle->pieces.size() > most_idle) {
          idle->pieces.pop_front();
        }
      },
      piece.options());
  return {std::move(inputs), at::empty({count}, at::kLong)};
}

}  // namespace abtrain::data
