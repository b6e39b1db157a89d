#include "data/device_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"

namespace abtrain::data {

struct DeviceLoader::State {
  State(
      const DeviceImages& from,
      const Augment& how,
      const ExampleOrder& which,
      std::int64_t size,
      std::int64_t first,
      at::ScalarType wanted)
      : images(from),
        augment(how),
        order(which),
        batch_size(size),
        steps(full_batches(which, size)),
        type(wanted),
        epoch(first / steps),
        step(first % steps) {
    ABT_ASSERT(first >= 0, "first step ", first);
    thread =
        std::jthread([this, from_epoch = epoch](const std::stop_token& stop) {
          try {
            produce(stop, from_epoch);
          } catch (...) {
            const std::lock_guard lock(mutex);
            error = std::current_exception();
          }
          filled.notify_one();
        });
  }

  // The epoch's examples in the host's memory, page-locked for a GPU.
  at::Tensor examples_of(std::int64_t which) const {
    const std::vector<std::int64_t> examples = order.epoch(which);
    for (const std::int64_t index : examples) {
      ABT_ASSERT(
          index >= 0 && index < images.size(),
          "the order of epoch ",
          which,
          " has example ",
          index,
          " of ",
          images.size());
    }
    at::Tensor made = at::empty(
        {static_cast<std::int64_t>(examples.size())},
        at::TensorOptions(at::kLong).pinned_memory(images.labels.is_cuda()));
    std::ranges::copy(examples, made.data_ptr<std::int64_t>());
    return made;
  }

  void produce(const std::stop_token& stop, std::int64_t first) {
    for (std::int64_t which = first;; ++which) {
      at::Tensor examples = examples_of(which);
      std::unique_lock lock(mutex);
      if (!taken.wait(lock, stop, [&] { return !ready; }) ||
          stop.stop_requested()) {
        return;
      }
      ready = std::move(examples);
      filled.notify_one();
    }
  }

  at::Tensor take() {
    std::unique_lock lock(mutex);
    if (!ready && !error) {
      const auto start = std::chrono::steady_clock::now();
      filled.wait(lock, [&] { return ready || error; });
      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - start;
      waited += spent.count();
    }
    if (!ready) {
      std::rethrow_exception(error);
    }
    at::Tensor examples = std::move(*ready);
    ready.reset();
    lock.unlock();
    taken.notify_one();
    return examples;
  }

  const DeviceImages images;
  const Augment& augment;
  const ExampleOrder& order;
  const std::int64_t batch_size;
  const std::int64_t steps;
  const at::ScalarType type;
  std::int64_t epoch;
  std::int64_t step;
  at::Tensor current;  // the epoch's examples on the device
  double waited = 0;

  std::mutex mutex;
  std::condition_variable_any taken;
  std::condition_variable filled;
  std::optional<at::Tensor> ready;  // the next epoch's, on the host
  std::exception_ptr error;
  // Last: asked to stop and joined before the rest goes.
  std::jthread thread;
};

DeviceLoader::DeviceLoader(
    const DeviceImages& images,
    const Augment& augment,
    const ExampleOrder& order,
    std::int64_t batch_size,
    std::int64_t first_step,
    at::ScalarType type)
    : state_(std::make_unique<
             State>(images, augment, order, batch_size, first_step, type)) {}
DeviceLoader::~DeviceLoader() = default;

void DeviceLoader::next(Batch& batch) {
  State& s = *state_;
  if (s.step == s.steps) {
    s.current.reset();
    s.step = 0;
    ++s.epoch;
  }
  if (!s.current.defined()) {
    // The allocator keeps the host's copy until the device has read it.
    s.current = s.take().to(s.images.labels.device(), /*non_blocking=*/true);
  }
  s.augment.training(
      s.images,
      s.current.narrow(0, s.step * s.batch_size, s.batch_size),
      s.epoch,
      s.type,
      batch);
  ++s.step;
}

std::int64_t DeviceLoader::steps_per_epoch() const {
  return state_->steps;
}

double DeviceLoader::waited() const {
  return state_->waited;
}

}  // namespace abtrain::data
