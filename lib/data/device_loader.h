// A worker's batches, made on the device from images that lie there.
#pragma once

#include <cstdint>
#include <memory>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/device_images.h"
#include "data/order.h"

namespace abtrain::data {

// The same examples in the same order with the same pixels as Loader. An
// epoch's order is made a whole epoch ahead by one thread, or when it becomes
// known, and sent once an epoch; a batch is then one kernel. Not thread-safe: one consumer. Throws from
// next() what its thread threw.
class DeviceLoader : public BatchSource {
 public:
  // As Loader; `type` of the images: float32 or bfloat16. The references must
  // outlive the loader. Works on the CPU too. Throws Config where an epoch has
  // no full batch.
  DeviceLoader(
      const DeviceImages& images,
      const Augment& augment,
      const ExampleOrder& order,
      std::int64_t batch_size,
      std::int64_t first_step = 0,
      at::ScalarType type = at::kFloat);
  ~DeviceLoader() override;
  void next(Batch& batch) override;
  std::int64_t steps_per_epoch() const override;
  double waited() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::data
