#include "data/balanced_order.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/error.h"

namespace abtrain::data {

BalancedOrder::BalancedOrder(std::vector<std::int64_t> first)
    : order_(std::move(first)), next_(order_.size()) {}

void BalancedOrder::decide_unit(int sign) {
  ABT_ASSERT(sign == 1 || sign == -1, "a sign of {}", sign);
  ABT_ASSERT(decided_ < std::ssize(order_), "all units are decided");
  const std::int64_t late = decided_ - early_;
  const std::int64_t place = sign > 0 ? early_++ : std::ssize(next_) - 1 - late;
  next_[static_cast<std::size_t>(place)] = order_[static_cast<std::size_t>(decided_++)];
}

void BalancedOrder::decide_pair(int sign) {
  decide_unit(sign);
  decide_unit(-sign);
}

void BalancedOrder::end_epoch() {
  ABT_ASSERT(
      decided_ + 1 >= std::ssize(order_), "{} of {} units are decided", decided_, order_.size());
  if (decided_ < std::ssize(order_)) {
    decide_unit(1);
  }
  order_.swap(next_);
  decided_ = 0;
  early_ = 0;
}

std::vector<std::int64_t> BalancedOrder::save() const {
  std::vector<std::int64_t> saved = {decided_, early_};
  saved.insert(saved.end(), order_.begin(), order_.end());
  // Leaves out the places of next_ that are not filled yet, because they hold stale values.
  const auto late = static_cast<std::ptrdiff_t>(decided_ - early_);
  saved.insert(saved.end(), next_.begin(), next_.begin() + early_);
  saved.insert(saved.end(), next_.end() - late, next_.end());
  return saved;
}

bool BalancedOrder::restore(const std::vector<std::int64_t>& saved) {
  const std::int64_t units = std::ssize(order_);
  if (saved.size() < 2) {
    return false;
  }
  const std::int64_t decided = saved[0];
  const std::int64_t early = saved[1];
  if (early < 0 || decided < early || decided > units || std::ssize(saved) != 2 + units + decided) {
    return false;
  }
  const auto begin = saved.begin() + 2;
  std::vector<std::int64_t> order(begin, begin + units);
  // The units decided so far must be the first ones of the order.
  std::vector<std::int64_t> changed = order;
  std::copy(begin + units, saved.end(), changed.begin());
  const auto has_all = [](std::vector<std::int64_t> some) {
    std::ranges::sort(some);
    return std::ranges::equal(some, std::views::iota(std::int64_t{0}, std::ssize(some)));
  };
  if (!has_all(order) || !has_all(changed)) {
    return false;
  }
  order_ = std::move(order);
  std::copy_n(changed.begin(), early, next_.begin());
  std::copy_n(changed.begin() + early, decided - early, next_.end() - (decided - early));
  decided_ = decided;
  early_ = early;
  return true;
}

}  // namespace abtrain::data
