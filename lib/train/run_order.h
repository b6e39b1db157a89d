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
  // Receives the gradients; null if they do not decide the order.
  orders::Balancer* balancer() {
    return balancer_ ? &*balancer_ : nullptr;
  }
  // Starts afresh after t steps.
  void start(std::int64_t t, methods::Method& method);
  // Follows the method when it trains other parameters or averages over another group.
  void bind(methods::Method& method);
  // Completes decisions that are under way. Collective.
  void settle();
  // Saves or loads the decisions.
  void archive(state::Archive& archive, methods::Method& method);
  // Whether the order is at its position after t steps.
  bool is_at(std::int64_t t) const;

 private:
  // The position within the epoch after t steps, in units of the order.
  std::int64_t place_after(std::int64_t t) const;

  const config::RunOptions& options_;
  const std::int64_t steps_per_epoch_;
  const c10::Device device_;
  std::optional<orders::Balancer> balancer_;
  std::unique_ptr<data::ExampleOrder> order_;
  std::int64_t layout_ = -1;             // the method's layout that it is bound to
  comm::Communicator* group_ = nullptr;  // the group that it is bound to
};

}  // namespace abtrain::train
