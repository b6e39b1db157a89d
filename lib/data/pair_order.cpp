#include "data/pair_order.h"

#include <utility>

#include "base/error.h"

namespace abtrain::data {

PairOrder::PairOrder(std::vector<std::int64_t> first)
    : order_(std::move(first)), next_(order_.size()) {}

void PairOrder::decide(int sign) {
  ABT_ASSERT(sign == 1 || sign == -1, "a sign of ", sign);
  ABT_ASSERT(decided_ < pairs(), "all ", pairs(), " pairs are decided");
  const auto l = static_cast<std::size_t>(decided_++);
  std::int64_t early = order_[2 * l];
  std::int64_t late = order_[2 * l + 1];
  if (sign < 0) {
    std::swap(early, late);
  }
  next_[l] = early;
  next_[order_.size() - 1 - l] = late;
}

void PairOrder::end_epoch() {
  ABT_ASSERT(
      decided_ == pairs(), decided_, " of ", pairs(), " pairs are decided");
  if (order_.size() % 2 == 1) {
    next_[order_.size() / 2] = order_.back();
  }
  order_.swap(next_);
  decided_ = 0;
}

}  // namespace abtrain::data
