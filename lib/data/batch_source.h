// Where a training takes its batches from.
#pragma once

#include <cstdint>

#include "data/batch.h"

namespace abtrain::data {

// Not thread-safe: one consumer, always the same thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, on the device of the training. Tensors that `batch` holds
  // already are written in place; undefined ones become new tensors. On a GPU
  // that is queued on this thread's stream, and the host does not wait for it.
  virtual void next(Batch& batch) = 0;
  // Full batches in an epoch.
  virtual std::int64_t steps_per_epoch() const = 0;
  // Seconds that next() has waited for work of the host.
  virtual double waited() const = 0;
};

}  // namespace abtrain::data
