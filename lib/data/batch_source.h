// The source of a training run's batches.
#pragma once

#include "data/batch.h"

namespace abtrain::data {

// Not thread-safe: one consumer, always the same thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Gets the next batch, on the training device. Writes into the tensors that `batch` holds;
  // creates them if it is empty. On a GPU the work is queued on this thread's stream, and the host
  // does not wait for it.
  virtual void next(Batch& batch) = 0;
  // Seconds that next() has spent waiting for work on the host.
  virtual double waited() const = 0;
};

}  // namespace abtrain::data
