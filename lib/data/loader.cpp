#include "data/loader.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"

namespace abtrain::data {

namespace {

void hand_over(const at::Tensor& made, c10::Device device, at::Tensor& to) {
  if (to.defined()) {
    to.copy_(made, /*non_blocking=*/true);
  } else {
    to = made.to(device, made.scalar_type(), /*non_blocking=*/true);
  }
}

}  // namespace

struct Loader::State {
  State(
      const Images& from,
      const Augment& how,
      const ExampleOrder& which,
      std::int64_t size,
      std::int64_t ahead,
      std::int64_t first,
      c10::Device target)
      : images(from),
        augment(how),
        order(which),
        batch_size(size),
        steps(full_batches(which, size)),
        prefetch(static_cast<std::size_t>(ahead)),
        device(target) {
    ABT_CHECK(
        ahead >= 1, Config, "data.prefetch: expected 1 or more, got ", ahead);
    ABT_ASSERT(first >= 0, "first step ", first);
    thread = std::jthread([this, first](const std::stop_token& stop) {
      try {
        produce(stop, first);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
      }
      filled.notify_one();
    });
  }

  void produce(const std::stop_token& stop, std::int64_t first) {
    const auto size = static_cast<std::size_t>(batch_size);
    std::int64_t step = first % steps;
    for (std::int64_t epoch = first / steps;; ++epoch, step = 0) {
      const std::vector<std::int64_t> examples = order.epoch(epoch);
      for (; step < steps; ++step) {
        Batch batch = augment.training(
            images,
            std::span(examples).subspan(
                static_cast<std::size_t>(step) * size, size),
            epoch,
            /*page_locked=*/device.is_cuda());
        std::unique_lock lock(mutex);
        if (!taken.wait(lock, stop, [&] { return ready.size() < prefetch; }) ||
            stop.stop_requested()) {
          return;
        }
        ready.push_back(std::move(batch));
        filled.notify_one();
      }
    }
  }

  const Images& images;
  const Augment& augment;
  const ExampleOrder& order;
  const std::int64_t batch_size;
  const std::int64_t steps;
  const std::size_t prefetch;
  const c10::Device device;
  double waited = 0;

  std::mutex mutex;
  std::condition_variable_any taken;
  std::condition_variable filled;
  std::deque<Batch> ready;
  std::exception_ptr error;
  // Last: asked to stop and joined before the rest goes.
  std::jthread thread;
};

Loader::Loader(
    const Images& images,
    const Augment& augment,
    const ExampleOrder& order,
    std::int64_t batch_size,
    std::int64_t prefetch,
    std::int64_t first_step,
    c10::Device device)
    : state_(std::make_unique<State>(
          images,
          augment,
          order,
          batch_size,
          prefetch,
          first_step,
          device)) {}
Loader::~Loader() = default;

void Loader::next(Batch& batch) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.ready.empty() && !state.error) {
    const auto start = std::chrono::steady_clock::now();
    state.filled.wait(
        lock, [&] { return !state.ready.empty() || state.error; });
    state.waited +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  if (state.ready.empty()) {
    std::rethrow_exception(state.error);
  }
  const Batch made = std::move(state.ready.front());
  state.ready.pop_front();
  lock.unlock();
  state.taken.notify_one();
  hand_over(made.images, state.device, batch.images);
  hand_over(made.labels, state.device, batch.labels);
}

std::int64_t Loader::steps_per_epoch() const {
  return state_->steps;
}

double Loader::waited() const {
  return state_->waited;
}

}  // namespace abtrain::data
