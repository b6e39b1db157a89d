#include "orders/order_traffic.h"

#include <map>
#include <tuple>

#include "orders/difference_wire.h"
#include "orders/order_kind.h"

namespace abtrain::orders {

OrderTraffic order_traffic(
    const OrderOptions& options,
    std::int64_t batch_size,
    std::int64_t accumulate,
    const RunLength& length) {
  if (!kind_of(options).decides_together) {
    return {};
  }
  const bool examples = balances_examples(options, batch_size * accumulate);
  // Differences are sent after each batch, or after each second step.
  const std::int64_t pairs = examples ? batch_size / 2 : 1;
  const std::int64_t exchanges = examples ? accumulate : 1;
  // Bytes of a step with differences, by parameters, members and member.
  std::map<std::tuple<std::int64_t, int, int>, std::int64_t> known;
  return [=](std::int64_t t,
             std::int64_t since,
             std::int64_t numel,
             int members,
             int member) mutable -> std::int64_t {
    const bool second = t % length.steps_per_epoch % 2 == 1 && t > since;
    if (!examples && !second) {
      return 0;
    }
    const auto [place, is_new] = known.try_emplace({numel, members, member}, 0);
    if (is_new) {
      place->second =
          exchanges * difference_bytes(options, numel, pairs, members, member);
    }
    return place->second;
  };
}

}  // namespace abtrain::orders
