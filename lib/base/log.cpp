#include "base/log.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/terminal.h"
#include "base/text.h"

namespace abtrain {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

const char* label(LogLevel level, bool color) {
  switch (level) {
    case LogLevel::Warning:
      return color ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
    case LogLevel::Debug:
      return color ? "\x1b[2mdebug:\x1b[0m " : "debug: ";
    default:
      return "";
  }
}

// At most `width` UTF-8 characters: a longer line would wrap, and clearing the
// line would not remove all of it.
std::string cut(const std::string& line, int width) {
  int characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    if (begins && ++characters > width) {
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
  put(formatted(
      "{}{}{}\n{}", live_.empty() ? "" : kClearLine, label(level, color_),
      printable(message, "\n\t"), live_));
}

void Log::live(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!is_live() || (line.empty() && live_.empty())) {
    return;
  }
  live_ = cut(printable(line), terminal_width(descriptor_) - 1);
  put(kClearLine + live_);
}

void Log::put(const std::string& text) const {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      return;
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

}  // namespace abtrain
