// Active while a process waits for the others at the start: says what it waits
// for if that takes long, and ends the process with exit code 75 on a signal,
// which nothing else would notice. Tested in test_setup_watch.cpp.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace abtrain::train {

class MeetingWatch {
 public:
  explicit MeetingWatch(std::string text);

 private:
  void watch(const std::string& text, const std::stop_token& end);

  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace abtrain::train
