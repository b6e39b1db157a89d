// The failure flag that all threads of a LocalWorld share. Internal to the back
// ends: the NCCL back end also keeps its flag in one, without groups.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/failure.h"

namespace abtrain::comm {

class LocalGroup;

class LocalState {
 public:
  explicit LocalState(double timeout_seconds) : timeout_(timeout_seconds) {}

  void abort(std::exception_ptr cause) noexcept;
  std::exception_ptr cause() const {
    return failure_.cause();
  }
  bool aborted() const {
    return failure_.happened();
  }
  void throw_if_aborted() const {
    failure_.throw_if_happened();
  }
  double timeout() const {
    return timeout_;
  }
  // An abort wakes the members of every group that is enlisted here.
  void enlist(const std::shared_ptr<LocalGroup>& group);

 private:
  const double timeout_;
  Failure failure_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<LocalGroup>> groups_;
};

}  // namespace abtrain::comm
