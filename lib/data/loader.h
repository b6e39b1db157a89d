// A worker's batches, which one thread prepares ahead of the training.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <stop_token>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/prefetcher.h"
#include "device/side_stream.h"

namespace abtrain::data {

// Not thread-safe: one consumer. next() throws what the loader's thread threw.
class Loader : public BatchSource {
 public:
  // Yields batches of `batch_size` examples of the worker's share, epoch after epoch without end;
  // drops an epoch's incomplete last batch. The first batch is that of step `first_step`. The
  // references must outlive the loader. The loader's thread calls order.wait_for(e) up to
  // `prefetch` batches before the first batch of epoch e is taken. For a GPU, batches lie in
  // page-locked memory, and while the consumer's stream works on one, another stream copies the
  // next. `type` of images: float32 or bfloat16. Throws Config if an epoch has no full batch.
  Loader(
      const Examples& examples, const Augment& augment, const ExampleOrder& order,
      std::int64_t batch_size, std::int64_t prefetch, std::int64_t first_step = 0,
      c10::Device device = c10::kCPU, at::ScalarType type = at::kFloat);
  void next(Batch& batch) override;
  double waited() const override {
    return batches_.waited();
  }

 private:
  // A batch on its way to the device.
  struct Sent {
    Batch batch;
    device::Event there;
  };
  Sent send(const Batch& made);
  void produce(
      std::int64_t first, const Prefetcher<Batch>::Put& put, const std::stop_token& stop) const;

  const Examples& examples_;
  const Augment& augment_;
  const ExampleOrder& order_;
  const std::int64_t batch_size_;
  const std::int64_t steps_;
  const c10::Device device_;
  const at::ScalarType type_;
  device::SideStream copies_;
  std::optional<Sent> ahead_;
  Prefetcher<Batch> batches_;  // last: its thread uses the other members
};

}  // namespace abtrain::data
