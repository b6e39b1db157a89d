#include "data/loader.h"

#include <span>

#include "base/error.h"
#include "data/prefetcher.h"

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
      const Examples& from, const Augment& how, const ExampleOrder& which, std::int64_t size,
      std::int64_t prefetch, std::int64_t first, c10::Device target)
      : examples(from),
        augment(how),
        order(which),
        batch_size(size),
        steps(full_batches(which, size)),
        device(target),
        batches(capacity(prefetch), [this, first](const auto& put, const auto& stop) {
          produce(first, put, stop);
        }) {
    ABT_ASSERT(first >= 0, "first step {}", first);
  }

  static std::size_t capacity(std::int64_t prefetch) {
    ABT_CHECK(prefetch >= 1, Config, "data.prefetch: expected 1 or more, got {}", prefetch);
    return static_cast<std::size_t>(prefetch);
  }

  void produce(
      std::int64_t first, const Prefetcher<Batch>::Put& put, const std::stop_token& stop) const {
    const auto size = static_cast<std::size_t>(batch_size);
    std::int64_t step = first % steps;
    for (std::int64_t epoch = first / steps;; ++epoch, step = 0) {
      const std::vector<std::int64_t> indices = order.wait_for(epoch, stop);
      if (stop.stop_requested()) {
        return;
      }
      for (; step < steps; ++step) {
        if (!put(augment.training(
                examples, std::span(indices).subspan(static_cast<std::size_t>(step) * size, size),
                epoch,
                /*page_locked=*/device.is_cuda()))) {
          return;
        }
      }
    }
  }

  const Examples& examples;
  const Augment& augment;
  const ExampleOrder& order;
  const std::int64_t batch_size;
  const std::int64_t steps;
  const c10::Device device;
  Prefetcher<Batch> batches;  // last: its thread uses the rest
};

Loader::Loader(
    const Examples& examples, const Augment& augment, const ExampleOrder& order,
    std::int64_t batch_size, std::int64_t prefetch, std::int64_t first_step, c10::Device device)
    : state_(std::make_unique<State>(
          examples, augment, order, batch_size, prefetch, first_step, device)) {}
Loader::~Loader() = default;

void Loader::next(Batch& batch) {
  const Batch made = state_->batches.take();
  hand_over(made.inputs, state_->device, batch.inputs);
  hand_over(made.labels, state_->device, batch.labels);
}

std::int64_t Loader::steps_per_epoch() const {
  return state_->steps;
}

double Loader::waited() const {
  return state_->batches.waited();
}

}  // namespace abtrain::data
