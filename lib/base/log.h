// Messages for people, on standard error. A Log is an object that is passed
// around, not a global; threads may share one.
#pragma once

#include <mutex>
#include <string>

#include "base/text.h"

namespace abtrain {

enum class LogLevel { Quiet, Warning, Info };

class Log {
 public:
  // Colors and the live line are used only on a terminal. Failures to write are
  // ignored: a closed standard error must not end a training run.
  explicit Log(LogLevel level = LogLevel::Info, int descriptor = 2);

  // `text` and `parts`: as for formatted().
  template <class... T>
  void warning(fmt::format_string<T...> text, const T&... parts) {
    write(LogLevel::Warning, formatted(text, parts...));
  }
  template <class... T>
  void info(fmt::format_string<T...> text, const T&... parts) {
    write(LogLevel::Info, formatted(text, parts...));
  }

  // Shows a status line that the next call replaces; messages appear above it.
  // "" removes it. Nothing is written if the output is not a terminal.
  void live(const std::string& line);
  bool is_live() const {
    return tty_ && level_ >= LogLevel::Info;
  }
  // Call it only while no other thread uses the log.
  void set_level(LogLevel level) {
    level_ = level;
  }

 private:
  void write(LogLevel level, const std::string& message);

  LogLevel level_;
  int descriptor_;
  bool tty_;
  bool color_;
  std::mutex mutex_;
  std::string live_;
};

}  // namespace abtrain
