#include "data/published_order.h"

#include <utility>

#include "base/error.h"

namespace abtrain::data {

PublishedOrder::PublishedOrder(std::vector<std::int64_t> examples, std::int64_t unit)
    : examples_(std::move(examples)), unit_(unit) {
  ABT_ASSERT(
      unit >= 1 && examples_per_epoch() % unit == 0, "{} examples in units of {}", examples_.size(),
      unit);
}

void PublishedOrder::publish(std::int64_t epoch, const std::vector<std::int64_t>& order) {
  ABT_ASSERT(
      static_cast<std::int64_t>(order.size()) == units(), "{} of {} units", order.size(), units());
  std::vector<std::int64_t> mine;
  mine.reserve(examples_.size());
  for (const std::int64_t u : order) {
    ABT_ASSERT(u >= 0 && u < units(), "unit {} of {}", u, units());
    const auto first = examples_.begin() + u * unit_;
    mine.insert(mine.end(), first, first + unit_);
  }
  {
    const std::lock_guard lock(mutex_);
    ABT_ASSERT(epoch > epoch_, "epoch {} after {}", epoch, epoch_);
    epoch_ = epoch;
    order_ = std::move(mine);
  }
  published_.notify_all();
}

std::vector<std::int64_t> PublishedOrder::epoch(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  ABT_ASSERT(epoch == epoch_, "epoch {} was requested, but {} is known", epoch, epoch_);
  return order_;
}

std::vector<std::int64_t> PublishedOrder::wait_for(
    std::int64_t epoch, const std::stop_token& stop) const {
  {
    std::unique_lock lock(mutex_);
    if (!published_.wait(lock, stop, [&] { return epoch_ >= epoch; })) {
      return {};
    }
  }
  return this->epoch(epoch);
}

}  // namespace abtrain::data
