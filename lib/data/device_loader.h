// A worker's batches, made on a device from images held there.
#pragma once

#include <cstdint>
#include <stop_token>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/device_images.h"
#include "data/order.h"
#include "data/prefetcher.h"

namespace abtrain::data {

// Yields the same examples in the same order with the same pixels as Loader. A thread prepares each
// epoch's order one epoch ahead, or as soon as it is known. next() sends the order to the device
// once per epoch, and makes each batch there by one kernel; it throws what the thread threw. Not
// thread-safe: one consumer.
class DeviceLoader : public BatchSource {
 public:
  // Arguments as for Loader. `type` of the images: float32 or bfloat16. The references must outlive
  // the loader. Works on the CPU, too. Throws Config if an epoch has no full batch.
  DeviceLoader(
      const DeviceImages& images, const Augment& augment, const ExampleOrder& order,
      std::int64_t batch_size, std::int64_t first_step = 0, at::ScalarType type = at::kFloat);
  void next(Batch& batch) override;
  double waited() const override {
    return orders_.waited();
  }

 private:
  // The epoch's examples as indices in host memory, page-locked for a GPU.
  at::Tensor examples_of(std::int64_t epoch, const std::stop_token& stop) const;

  const DeviceImages images_;
  const Augment& augment_;
  const ExampleOrder& order_;
  const std::int64_t batch_size_;
  const std::int64_t steps_;
  const at::ScalarType type_;
  std::int64_t epoch_;
  std::int64_t step_;
  at::Tensor current_;  // this epoch's examples, on the device
  // The examples of the next epochs. Last, because its thread uses the other members.
  Prefetcher<at::Tensor> orders_;
};

}  // namespace abtrain::data
