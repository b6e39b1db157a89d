#include "data/loader.h"

#include <span>

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

Loader::Loader(
    const Examples& examples, const Augment& augment, const ExampleOrder& order,
    std::int64_t batch_size, std::int64_t prefetch, std::int64_t first_step, c10::Device device)
    : examples_(examples),
      augment_(augment),
      order_(order),
      batch_size_(batch_size),
      steps_(full_batches(order, batch_size)),
      device_(device),
      batches_(
          static_cast<std::size_t>(prefetch),
          [this, first_step](const auto& put, const auto& stop) {
            produce(first_step, put, stop);
          }) {}

void Loader::produce(
    std::int64_t first, const Prefetcher<Batch>::Put& put, const std::stop_token& stop) const {
  const auto size = static_cast<std::size_t>(batch_size_);
  std::int64_t step = first % steps_;
  for (std::int64_t epoch = first / steps_;; ++epoch, step = 0) {
    const std::vector<std::int64_t> indices = order_.wait_for(epoch, stop);
    if (stop.stop_requested()) {
      return;
    }
    for (; step < steps_; ++step) {
      if (!put(augment_.training(
              examples_, std::span(indices).subspan(static_cast<std::size_t>(step) * size, size),
              epoch, /*page_locked=*/device_.is_cuda()))) {
        return;
      }
    }
  }
}

void Loader::next(Batch& batch) {
  const Batch made = batches_.take();
  hand_over(made.inputs, device_, batch.inputs);
  hand_over(made.labels, device_, batch.labels);
}

}  // namespace abtrain::data
