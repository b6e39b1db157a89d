#include "data/loader.h"

#include <ATen/ops/empty_like.h>

#include <span>
#include <utility>

namespace abtrain::data {

namespace {

at::Tensor page_locked(const at::Tensor& made, at::ScalarType type) {
  const at::Tensor copy = at::empty_like(made, made.options().dtype(type).pinned_memory(true));
  return at::Tensor(copy).copy_(made);
}

}  // namespace

Loader::Loader(
    const Examples& examples, const Augment& augment, const ExampleOrder& order,
    std::int64_t batch_size, std::int64_t prefetch, std::int64_t first_step, c10::Device device,
    at::ScalarType type)
    : examples_(examples),
      augment_(augment),
      order_(order),
      batch_size_(batch_size),
      steps_(full_batches(order, batch_size)),
      device_(device),
      type_(type),
      copies_(device),
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
      Batch made = augment_.training(
          examples_, std::span(indices).subspan(static_cast<std::size_t>(step) * size, size),
          epoch);
      if (device_.is_cuda()) {
        const bool images = made.inputs.is_floating_point();
        made.inputs = page_locked(made.inputs, images ? type_ : made.inputs.scalar_type());
        made.labels = page_locked(made.labels, made.labels.scalar_type());
      }
      if (!put(std::move(made))) {
        return;
      }
    }
  }
}

// Starts copying a batch to the device on a side stream, after the work queued on the consumer's
// stream so far. The copy's memory is allocated on the consumer's stream.
Loader::Sent Loader::send(const Batch& made) {
  if (device_.is_cpu()) {
    return {made, {}};
  }
  const auto there = [&](const at::Tensor& part) {
    return at::empty_like(part, part.options().device(device_).pinned_memory(false));
  };
  const Batch to{there(made.inputs), there(made.labels)};
  return {to, copies_.start([&] {
            for (const auto& [place, part] :
                 {std::pair{&to.inputs, &made.inputs}, {&to.labels, &made.labels}}) {
              device::keep_for_current_stream(*place);
              at::Tensor(*place).copy_(*part, /*non_blocking=*/true);
            }
          })};
}

void Loader::next(Batch& batch) {
  const Sent sent = ahead_ ? *std::exchange(ahead_, {}) : send(batches_.take());
  sent.there.order_after();
  for (const auto& [to, from] :
       {std::pair{&batch.inputs, &sent.batch.inputs}, {&batch.labels, &sent.batch.labels}}) {
    if (to->defined()) {
      to->copy_(*from, /*non_blocking=*/true);
    } else {
      *to = *from;
    }
  }
  if (device_.is_cuda() && batches_.has_one()) {
    ahead_ = send(batches_.take());
  }
}

}  // namespace abtrain::data
