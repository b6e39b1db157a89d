#include "comm/local_state.h"

#include "base/error.h"
#include "comm/local_group.h"

namespace abtrain::comm {

namespace {

std::string message_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    const bool plain = error.kind() == ErrorKind::PeerLost;
    return plain ? error.what() : str("another worker failed: ", error.what());
  } catch (const std::exception& error) {
    return str("another worker failed: ", error.what());
  } catch (...) {
    return "another worker failed";
  }
}

}  // namespace

void LocalState::abort(std::exception_ptr cause) noexcept {
  std::vector<std::weak_ptr<LocalGroup>> groups;
  {
    const std::lock_guard lock(mutex_);
    if (cause_) {
      return;
    }
    cause_ = cause;
    message_ = message_of(cause);
    aborted_.store(true, std::memory_order_release);
    groups.swap(groups_);
  }
  for (const auto& weak : groups) {
    if (const auto group = weak.lock()) {
      group->wake();
    }
  }
}

std::exception_ptr LocalState::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

void LocalState::throw_if_aborted() const {
  if (aborted()) {
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::PeerLost, message_);
  }
}

void LocalState::enlist(const std::shared_ptr<LocalGroup>& group) {
  const std::lock_guard lock(mutex_);
  std::erase_if(groups_, [](const auto& weak) { return weak.expired(); });
  groups_.push_back(group);
}

}  // namespace abtrain::comm
