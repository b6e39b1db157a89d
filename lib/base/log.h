// Messages for people, on standard error. An object that is handed around, not
// a global; one object may be shared by threads.
#pragma once

#include <mutex>
#include <string>

#include "base/text.h"

namespace abtrain {

enum class LogLevel { Quiet, Warning, Info, Debug };

class Log {
 public:
  // Colours and the live line only on a terminal. Failures to write are
  // ignored: a closed standard error must not end a training run.
  explicit Log(LogLevel level = LogLevel::Info, int descriptor = 2);

  template <class... Parts>
  void warning(const Parts&... parts) {
    write(LogLevel::Warning, str(parts...));
  }
  template <class... Parts>
  void info(const Parts&... parts) {
    write(LogLevel::Info, str(parts...));
  }
  template <class... Parts>
  void debug(const Parts&... parts) {
    write(LogLevel::Debug, str(parts...));
  }

  // A line that the next one replaces; messages go above it. "" takes it away.
  // Nothing is written where there is no terminal.
  void live(const std::string& line);
  bool is_live() const {
    return tty_ && level_ >= LogLevel::Info;
  }
  LogLevel level() const {
    return level_;
  }

 private:
  void write(LogLevel level, const std::string& message);
  void put(const std::string& text) const;

  LogLevel level_;
  int descriptor_;
  bool tty_;
  bool color_;
  std::mutex mutex_;
  std::string live_;
};

}  // namespace abtrain
