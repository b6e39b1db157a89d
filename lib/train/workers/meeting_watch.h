// Active while a process waits for the others at the start: says what it waits
// for if that takes long, and ends the process with exit code 75 on a signal,
// which nothing else would notice, even if the signal itself has ended the wait
// with an error. Tested in test_setup_watch.cpp.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace abtrain::train {

class MeetingWatch {
 public:
  explicit MeetingWatch(std::string text);
  ~MeetingWatch();

 private:
  void watch(const std::stop_token& end);
  void leave_on_signal() const;

  const std::string text_;
  const int errors_ = std::uncaught_exceptions();
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace abtrain::train
