// The parts of the training loop that deal with an order of the examples that
// gradients decide.
#include "train/trainer.h"

namespace abtrain::train {

std::unique_ptr<data::ExampleOrder> make_order_of_run(
    const config::RunOptions& options, const data::OrderSetting& setting,
    std::optional<orders::Balancer>& balancer) {
  const orders::OrderKind& kind = orders::kind_of(options.order);
  if (!kind.is_balanced()) {
    return kind.make(setting);
  }
  const std::int64_t step = options.data.batch_size * options.train.accumulate;
  const bool examples = config::balances_examples(options);
  auto order = data::make_published_order(setting, examples ? 1 : step, step);
  balancer.emplace(options.order, examples ? options.data.batch_size : 0, *order);
  return order;
}

data::OrderSetting Trainer::order_setting() const {
  return {in_.dataset.train.size(), world_->rank(), world_->size(), options_.seed, all_batches_};
}

// Starts a fresh order at step t.
void Trainer::start_order(std::int64_t t) {
  if (balancer_) {
    balancer_->start(t / length_.steps_per_epoch, place_in_order(t));
    bind_order();
  }
}

std::int64_t Trainer::place_in_order(std::int64_t t) const {
  const std::int64_t step = t % length_.steps_per_epoch;
  return config::balances_examples(options_)
             ? step * options_.data.batch_size * options_.train.accumulate
             : step;
}

// Binds the order again if other parameters are trained, or averaged over
// another group.
void Trainer::bind_order() {
  comm::Communicator* const group = method_->now().gradient_group;
  if (!balancer_ || (order_layout_ == method_->layout() && order_group_ == group)) {
    return;
  }
  order_layout_ = method_->layout();
  order_group_ = group;
  balancer_->bind(method_->block().numel(), in_.device, group);
}

// Settles decisions that are under way. Collective.
void Trainer::settle_order() {
  if (balancer_) {
    balancer_->settle();
  }
}

}  // namespace abtrain::train
