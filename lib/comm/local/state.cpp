#include "comm/local/state.h"

#include <utility>

#include "comm/local/group.h"

namespace abtrain::comm {

void LocalState::abort(std::exception_ptr cause) noexcept {
  if (!set(std::move(cause))) {
    return;
  }
  std::vector<std::weak_ptr<LocalGroup>> groups;
  {
    const std::lock_guard lock(groups_mutex_);
    groups.swap(groups_);
  }
  for (const auto& weak : groups) {
    if (const auto group = weak.lock()) {
      group->wake();
    }
  }
}

void LocalState::enlist(const std::shared_ptr<LocalGroup>& group) {
  const std::lock_guard lock(groups_mutex_);
  std::erase_if(groups_, [](const auto& weak) { return weak.expired(); });
  groups_.push_back(group);
}

}  // namespace abtrain::comm
