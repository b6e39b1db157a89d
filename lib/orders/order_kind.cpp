#include "orders/order_kind.h"

#include "base/error.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {
namespace {

constexpr OrderKind kKinds[] = {
    {.name = "shuffle", .make = data::make_shuffle},
    {.name = "sequential", .make = data::make_sequential},
    {.name = "grab"},
    {.name = "id-grab", .decides_pairs = true},
    {.name = "cd-grab", .decides_pairs = true, .decides_together = true},
};

}  // namespace

std::vector<std::string> order_names() {
  std::vector<std::string> names;
  for (const OrderKind& kind : kKinds) {
    names.emplace_back(kind.name);
  }
  return names;
}

const OrderKind& kind_of(const OrderOptions& options) {
  for (const OrderKind& kind : kKinds) {
    if (options.name == kind.name) {
      return kind;
    }
  }
  throw Error(
      ErrorKind::Config,
      formatted(
          "order.name: expected one of {}; got '{}'",
          join(order_names(), ", "),
          options.name));
}

bool balances_examples(
    const OrderOptions& options,
    std::int64_t examples_per_step) {
  return kind_of(options).is_balanced() && options.unit == OrderUnit::Example &&
         examples_per_step > 1;
}

Conflicts check(
    const OrderOptions& options,
    std::int64_t batch_size,
    std::int64_t accumulate) {
  Conflicts out;
  if (!balances_examples(options, batch_size * accumulate)) {
    return out;
  }
  if (batch_size > ops::kMaxPairRows) {
    out.push_back(
        {{"data.batch_size", "order.unit", "order.name"},
         formatted(
             "the products of all pairs of a batch's gradients are computed: "
             "expected at most {}, got {}",
             ops::kMaxPairRows,
             batch_size)});
  }
  if (kind_of(options).decides_pairs && batch_size % 2 == 1) {
    out.push_back(
        {{"data.batch_size", "order.unit", "order.name"},
         formatted(
             "neighbours are balanced in pairs within one batch: expected an "
             "even number, got {}",
             batch_size)});
  }
  return out;
}

}  // namespace abtrain::orders
