// A log that writes into a file of its own, so that a test can read what it has
// said.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/files.h"
#include "base/log.h"
#include "temp_folder.h"

namespace abtrain {

class SaidLog {
 public:
  explicit SaidLog(LogLevel level = LogLevel::Info) : log_(level, file_) {}
  ~SaidLog() {
    ::close(file_);
  }
  SaidLog(const SaidLog&) = delete;
  SaidLog& operator=(const SaidLog&) = delete;

  Log& log() {
    return log_;
  }
  std::string text() const {
    return read_file(folder_ / "said");
  }

 private:
  const TempFolder folder_;
  const int file_ = ::open((folder_ / "said").c_str(), O_WRONLY | O_CREAT, 0600);
  Log log_;
};

}  // namespace abtrain
