#include "data/device_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "data/prefetcher.h"

namespace abtrain::data {

struct DeviceLoader::State {
  State(
      const DeviceImages& from, const Augment& how, const ExampleOrder& which, std::int64_t size,
      std::int64_t first, at::ScalarType wanted)
      : images(from),
        augment(how),
        order(which),
        batch_size(size),
        steps(full_batches(which, size)),
        type(wanted),
        epoch(first / steps),
        step(first % steps),
        orders(1, [this, next = epoch](const auto& put, const auto& stop) mutable {
          while (put(examples_of(next, stop))) {
            ++next;
          }
        }) {
    ABT_ASSERT(first >= 0, "first step {}", first);
  }

  // The epoch's examples in host memory, page-locked for a GPU.
  at::Tensor examples_of(std::int64_t which, const std::stop_token& stop) const {
    const std::vector<std::int64_t> examples = order.wait_for(which, stop);
    for (const std::int64_t index : examples) {
      ABT_ASSERT(
          index >= 0 && index < images.size(), "the order of epoch {} has example {} of {}", which,
          index, images.size());
    }
    at::Tensor made = at::empty(
        {static_cast<std::int64_t>(examples.size())},
        at::TensorOptions(at::kLong).pinned_memory(images.labels.is_cuda()));
    std::ranges::copy(examples, made.data_ptr<std::int64_t>());
    return made;
  }

  const DeviceImages images;
  const Augment& augment;
  const ExampleOrder& order;
  const std::int64_t batch_size;
  const std::int64_t steps;
  const at::ScalarType type;
  std::int64_t epoch;
  std::int64_t step;
  at::Tensor current;  // this epoch's examples, on the device
  // Those of the next epochs. Last, since its thread uses the rest.
  Prefetcher<at::Tensor> orders;
};

DeviceLoader::DeviceLoader(
    const DeviceImages& images, const Augment& augment, const ExampleOrder& order,
    std::int64_t batch_size, std::int64_t first_step, at::ScalarType type)
    : state_(std::make_unique<State>(images, augment, order, batch_size, first_step, type)) {}
DeviceLoader::~DeviceLoader() = default;

void DeviceLoader::next(Batch& batch) {
  State& s = *state_;
  if (s.step == s.steps) {
    s.current.reset();
    s.step = 0;
    ++s.epoch;
  }
  if (!s.current.defined()) {
    // The allocator keeps the host's copy alive until the device has read it.
    s.current = s.orders.take().to(s.images.labels.device(), /*non_blocking=*/true);
  }
  s.augment.training(
      s.images, s.current.narrow(0, s.step * s.batch_size, s.batch_size), s.epoch, s.type, batch);
  ++s.step;
}

std::int64_t DeviceLoader::steps_per_epoch() const {
  return state_->steps;
}

double DeviceLoader::waited() const {
  return state_->orders.waited();
}

}  // namespace abtrain::data
