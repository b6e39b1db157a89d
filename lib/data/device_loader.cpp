#include "data/device_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"

namespace abtrain::data {

DeviceLoader::DeviceLoader(
    const DeviceImages& images, const Augment& augment, const ExampleOrder& order,
    std::int64_t batch_size, std::int64_t first_step, at::ScalarType type)
    : images_(images),
      augment_(augment),
      order_(order),
      batch_size_(batch_size),
      steps_(full_batches(order, batch_size)),
      type_(type),
      epoch_(first_step / steps_),
      step_(first_step % steps_),
      orders_(1, [this, next = epoch_](const auto& put, const auto& stop) mutable {
        while (put(examples_of(next, stop))) {
          ++next;
        }
      }) {}

at::Tensor DeviceLoader::examples_of(std::int64_t epoch, const std::stop_token& stop) const {
  const std::vector<std::int64_t> examples = order_.wait_for(epoch, stop);
  for (const std::int64_t index : examples) {
    ABT_ASSERT(
        index >= 0 && index < images_.size(), "the order of epoch {} has example {} of {}", epoch,
        index, images_.size());
  }
  at::Tensor made = at::empty(
      {std::ssize(examples)}, at::TensorOptions(at::kLong).pinned_memory(images_.labels.is_cuda()));
  std::ranges::copy(examples, made.data_ptr<std::int64_t>());
  return made;
}

void DeviceLoader::next(Batch& batch) {
  if (step_ == steps_) {
    current_.reset();
    step_ = 0;
    ++epoch_;
  }
  if (!current_.defined()) {
    // The allocator keeps the host's copy alive until the device has read it.
    current_ = orders_.take().to(images_.labels.device(), /*non_blocking=*/true);
  }
  augment_.training(
      images_, current_.narrow(0, step_ * batch_size_, batch_size_), epoch_, type_, batch);
  ++step_;
}

}  // namespace abtrain::data
