#include "comm/control/control.h"

#include <algorithm>
#include <utility>

namespace abtrain::comm {

LocalControl::LocalControl(int workers, std::function<bool()> wanted)
    : wanted_(std::move(wanted)), begun_(static_cast<std::size_t>(workers)) {}

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
