// A worker's batches, made on a device from images that are held there.
#pragma once

#include <cstdint>
#include <memory>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/device_images.h"
#include "data/order.h"

namespace abtrain::data {

// Yields the same examples in the same order with the same pixels as Loader. A
// thread prepares each epoch's order one epoch ahead, or as soon as it becomes
// known, and sends it once per epoch; each batch is then one kernel. Not
// thread-safe: one consumer. next() throws what that thread threw.
class DeviceLoader : public BatchSource {
 public:
  // Arguments as for Loader. `type` of the images: float32 or bfloat16. The
  // references must outlive the loader. Works on the CPU, too. Throws Config if
  // an epoch has no full batch.
  DeviceLoader(
      const DeviceImages& images, const Augment& augment, const ExampleOrder& order,
      std::int64_t batch_size, std::int64_t first_step = 0, at::ScalarType type = at::kFloat);
  ~DeviceLoader() override;
  void next(Batch& batch) override;
  std::int64_t steps_per_epoch() const override;
  double waited() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::data
