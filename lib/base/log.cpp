#include "base/log.h"

#include "base/descriptor.h"
#include "base/terminal.h"
#include "base/text.h"

namespace abtrain {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

const char* label(LogLevel level, bool color) {
  return level != LogLevel::Warning ? "" : color ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
}

// At most `width` UTF-8 characters: a longer line would wrap, and clearing the
// line would not remove all of it.
std::string cut(const std::string& line, int width) {
  int characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (begins_character(line[i]) && ++characters > width) {
      return line.substr(0, i);
    }
  }
  return line;
}

}  // namespace

Log::Log(LogLevel level, int descriptor)
    : level_(level),
      descriptor_(descriptor),
      tty_(is_tty(descriptor)),
      color_(wants_color(descriptor)) {}

void Log::write(LogLevel level, const std::string& message) {
  if (level > level_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  write_all(
      descriptor_, formatted(
                       "{}{}{}\n{}", live_.empty() ? "" : kClearLine, label(level, color_),
                       printable(message, "\n\t"), live_));
}

void Log::live(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!is_live() || (line.empty() && live_.empty())) {
    return;
  }
  live_ = cut(printable(line), terminal_width(descriptor_) - 1);
  write_all(descriptor_, kClearLine + live_);
}

}  // namespace abtrain
