// The order of a run's examples for one worker. If gradients decide the order (orders/balancer.h),
// also follows which parameters are trained and which workers average their gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "config/run_length.h"
#include "data/order.h"
#include "methods/method.h"
#include "orders/balancer.h"

namespace abtrain::train {

class RunOrder {
 public:
  RunOrder(
      const config::RunOptions& options, const RunLength& length, const data::OrderSetting& setting,
      c10::Device device);

  data::ExampleOrder& examples() {
    return *order_;
  }
  // Derives the order from the gradients that it receives; null if they do not decide the order.
  orders::Balancer* balancer() {
    return balancer_ ? &*balancer_ : nullptr;
  }
  // Starts in the initial order, not yet decided by gradients, at the position after t steps.
  void start(std::int64_t t, methods::Method& method);
  // Call after each step: adapts to a method that now trains other parameters or averages over
  // another group.
  void bind(methods::Method& method);
  // Completes transfers in flight between workers. Collective.
  void settle();
  // Saves or loads the order and what has been decided on the next one.
  void archive(state::Archive& archive, methods::Method& method);
  // True if the order stands at the position that it has after t steps.
  bool is_at(std::int64_t t) const;

 private:
  // The position within the epoch after t steps, in examples or steps (order.unit).
  std::int64_t place_after(std::int64_t t) const;

  const config::RunOptions& options_;
  const std::int64_t steps_per_epoch_;
  const c10::Device device_;
  std::optional<orders::Balancer> balancer_;
  std::unique_ptr<data::ExampleOrder> order_;
  std::int64_t layout_ = -1;             // Method::layout() at the last bind()
  comm::Communicator* group_ = nullptr;  // gradient group at the last bind()
};

}  // namespace abtrain::train
