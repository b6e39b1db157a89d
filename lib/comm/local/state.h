// The failure flag that all threads of a LocalWorld share. Internal to the back
// end.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/failure.h"

namespace abtrain::comm {

class LocalGroup;

class LocalState : public Failure {
 public:
  explicit LocalState(double timeout_seconds) : timeout(timeout_seconds) {}

  void abort(std::exception_ptr cause) noexcept;
  // An abort wakes the members of every group that is enlisted here.
  void enlist(const std::shared_ptr<LocalGroup>& group);

  const double timeout;

 private:
  std::mutex groups_mutex_;
  std::vector<std::weak_ptr<LocalGroup>> groups_;
};

}  // namespace abtrain::comm
