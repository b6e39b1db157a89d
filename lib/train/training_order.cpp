// The order of the examples where gradients decide on it: what the training
// loop has to do for that.
#include "train/training_loop.h"

namespace abtrain::train {

std::unique_ptr<data::ExampleOrder> make_order_of_run(
    const config::RunOptions& options,
    const data::OrderSetting& setting,
    std::optional<orders::Balancer>& balancer) {
  if (!data::is_balanced(options.order)) {
    return data::make_order(options.order, setting);
  }
  const std::int64_t step = options.data.batch_size * options.train.accumulate;
  const bool examples = config::balances_examples(options);
  auto order = data::make_published_order(setting, examples ? 1 : step, step);
  balancer.emplace(
      options.order,
      setting.seed,
      examples ? options.data.batch_size : 0,
      *order);
  return order;
}

// Gradients of microbatches are those that are averaged; of examples the
// training step has its own.
void Trainer::watch_order() {
  if (balancer_ && !balancer_->takes_examples()) {
    method_->watch_gradients(
        [this](const at::Tensor& all, std::int64_t begin, std::int64_t count) {
          balancer_->see(all, begin, count);
        });
  }
}

// A fresh order, from step t on.
void Trainer::start_order(std::int64_t t) {
  if (!balancer_) {
    return;
  }
  balancer_->start(t / length_.steps_per_epoch, place_in_order(t));
  bind_order();
}

std::int64_t Trainer::place_in_order(std::int64_t t) const {
  const std::int64_t step = t % length_.steps_per_epoch;
  return config::balances_examples(options_)
             ? step * options_.data.batch_size * options_.train.accumulate
             : step;
}

// Where other parameters are trained, or averaged over others.
void Trainer::bind_order() {
  comm::Communicator* const group = method_->gradient_group();
  if (!balancer_ ||
      (order_layout_ == method_->layout() && order_group_ == group)) {
    return;
  }
  order_layout_ = method_->layout();
  order_group_ = group;
  balancer_->bind(method_->block().numel(), in_.device, group);
}

// Decides on what is under way. Collective.
void Trainer::settle_order() {
  if (balancer_) {
    balancer_->settle();
  }
}

}  // namespace abtrain::train
