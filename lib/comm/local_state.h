// The failure flag that all threads of a LocalWorld share. Internal to the
// back ends: that of NCCL keeps its flag so too, with no groups.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace abtrain::comm {

class LocalGroup;

class LocalState {
 public:
  explicit LocalState(double timeout_seconds) : timeout_(timeout_seconds) {}

  void abort(std::exception_ptr cause) noexcept;
  std::exception_ptr cause() const;
  bool aborted() const {
    return aborted_.load(std::memory_order_acquire);
  }
  void throw_if_aborted() const;
  double timeout() const {
    return timeout_;
  }
  // An abort wakes the members of every group that is enlisted.
  void enlist(const std::shared_ptr<LocalGroup>& group);

 private:
  const double timeout_;
  std::atomic<bool> aborted_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr cause_;
  std::string message_;
  std::vector<std::weak_ptr<LocalGroup>> groups_;
};

}  // namespace abtrain::comm
