// The orders of the examples by name: how each one is made, and what the rest of a run must know
// about it. To add one, add a row to the table in order_kind.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/conflict.h"
#include "data/order.h"
#include "orders/order_options.h"

namespace abtrain::orders {

struct OrderKind {
  const char* name;
  // Makes an order that is known in advance; null: a Balancer derives it from
  // gradients (orders/balancer.h).
  std::unique_ptr<data::ExampleOrder> (*make)(const data::OrderSetting&) = nullptr;
  // Whether a Balancer decides on pairs of neighbors or on single units.
  bool decides_pairs = false;
  // Workers that average their gradients decide together, by sending gradient differences;
  // otherwise each worker decides alone.
  bool decides_together = false;

  bool is_balanced() const {
    return make == nullptr;
  }
};

std::vector<std::string> order_names();

// Throws Error(Config) for an unknown name.
const OrderKind& kind_of(const OrderOptions& options);

// Whether the order needs the gradients of single examples. With one example per step it does not:
// the step's gradient is the example's.
bool balances_examples(const OrderOptions& options, std::int64_t examples_per_step);

// Conflicts between the order and a step of `accumulate` batches of `batch_size` examples.
Conflicts check(const OrderOptions& options, std::int64_t batch_size, std::int64_t accumulate);

}  // namespace abtrain::orders
