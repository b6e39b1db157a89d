#include "orders/order_kind.h"

#include "base/named.h"
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
  return names_in(kKinds);
}

const OrderKind& kind_of(const OrderOptions& options) {
  return find_named(kKinds, options.name, "order.name");
}

bool balances_examples(const OrderOptions& options, std::int64_t examples_per_step) {
  return kind_of(options).is_balanced() && options.unit == OrderUnit::Example &&
         examples_per_step > 1;
}

Conflicts check(const OrderOptions& options, std::int64_t batch_size, std::int64_t accumulate) {
  Conflicts out;
  if (!balances_examples(options, batch_size * accumulate)) {
    return out;
  }
  const std::vector<std::string> keys = {"data.batch_size", "order.unit", "order.name"};
  conflict_if(
      batch_size > ops::kMaxPairRows, out, keys,
      "the products of all pairs of a batch's gradients are computed: "
      "expected at most {}, got {}",
      ops::kMaxPairRows, batch_size);
  conflict_if(
      kind_of(options).decides_pairs && batch_size % 2 == 1, out, keys,
      "neighbors are balanced in pairs within one batch: expected an "
      "even number, got {}",
      batch_size);
  return out;
}

}  // namespace abtrain::orders
