#include "comm/control/control.h"

#include <algorithm>
#include <utility>

#include "base/mapped.h"

namespace abtrain::comm {

namespace {

// Workers are at most a synchronization apart, which is fewer posts than this.
constexpr std::size_t kMaxRows = 1024;

}  // namespace

void Control::post(int worker, std::int64_t steps, const Spent& spent) {
  const std::lock_guard lock(spent_mutex_);
  if (steps <= latest_.steps) {
    return;
  }
  auto& row = rows_[steps];
  row.resize(workers_);
  row.at(static_cast<std::size_t>(worker)) = spent;
  if (std::ranges::all_of(row, [](const auto& entry) { return entry.has_value(); })) {
    latest_ = {steps, mapped(row, [](const auto& entry) { return *entry; })};
    rows_.erase(rows_.begin(), rows_.upper_bound(steps));
  } else if (rows_.size() > kMaxRows) {
    rows_.erase(rows_.begin());
  }
}

LocalControl::LocalControl(int workers, std::function<bool()> wanted)
    : Control(workers), wanted_(std::move(wanted)), begun_(static_cast<std::size_t>(workers)) {}

bool LocalControl::stop_before(int worker, std::int64_t t) {
  const std::lock_guard lock(mutex_);
  auto& begun = begun_[static_cast<std::size_t>(worker)];
  begun = std::max(begun, t);
  if (stop_at_ < 0 && wanted_()) {
    // Nobody has begun more steps than this: all can still reach it, and none
    // has passed it.
    stop_at_ = *std::max_element(begun_.begin(), begun_.end());
  }
  if (stop_at_ >= 0 && t >= stop_at_) {
    return true;
  }
  begun = t + 1;
  return false;
}

}  // namespace abtrain::comm
