// The bytes that an order sends, known before a run starts.
#pragma once

#include <cstdint>
#include <functional>

#include "base/duration.h"
#include "orders/order_options.h"

namespace abtrain::orders {

// Bytes that member `member` of `members` workers sends in step t, for `numel`
// parameters that they have trained since step `since`.
using OrderTraffic = std::function<std::int64_t(
    std::int64_t t,
    std::int64_t since,
    std::int64_t numel,
    int members,
    int member)>;

// In a run of this length, with steps of `accumulate` batches of `batch_size`.
// Empty for orders that send nothing.
OrderTraffic order_traffic(
    const OrderOptions& options,
    std::int64_t batch_size,
    std::int64_t accumulate,
    const RunLength& length);

}  // namespace abtrain::orders
