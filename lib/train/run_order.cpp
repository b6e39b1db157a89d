#include "train/run_order.h"

#include "orders/order_kind.h"

namespace abtrain::train {

RunOrder::RunOrder(
    const config::RunOptions& options, const RunLength& length, const data::OrderSetting& setting,
    c10::Device device)
    : options_(options), steps_per_epoch_(length.steps_per_epoch), device_(device) {
  const orders::OrderKind& kind = orders::kind_of(options.order);
  if (!kind.is_balanced()) {
    order_ = kind.make(setting);
    return;
  }
  const std::int64_t step = options.data.batch_size * options.train.accumulate;
  const bool examples = config::balances_examples(options);
  auto order = data::make_published_order(setting, examples ? 1 : step, step);
  balancer_.emplace(options.order, examples ? options.data.batch_size : 0, *order);
  order_ = std::move(order);
}

void RunOrder::start(std::int64_t t, methods::Method& method) {
  if (balancer_) {
    balancer_->start(t / steps_per_epoch_, place_after(t));
    bind(method);
  }
}

std::int64_t RunOrder::place_after(std::int64_t t) const {
  const std::int64_t step = t % steps_per_epoch_;
  return config::balances_examples(options_)
             ? step * options_.data.batch_size * options_.train.accumulate
             : step;
}

void RunOrder::bind(methods::Method& method) {
  comm::Communicator* const group = method.now().gradient_group;
  if (!balancer_ || (layout_ == method.layout() && group_ == group)) {
    return;
  }
  layout_ = method.layout();
  group_ = group;
  balancer_->bind(method.block().numel(), device_, group);
}

void RunOrder::settle() {
  if (balancer_) {
    balancer_->settle();
  }
}

void RunOrder::archive(state::Archive& archive, methods::Method& method) {
  if (balancer_) {
    bind(method);
    balancer_->archive(archive);
  }
}

bool RunOrder::is_at(std::int64_t t) const {
  return !balancer_ || balancer_->is_at(t / steps_per_epoch_, place_after(t));
}

}  // namespace abtrain::train
