#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/env.h"

namespace abtrain {

bool is_tty(int descriptor) {
  return ::isatty(descriptor) == 1;
}

int terminal_width(int descriptor, int otherwise) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return otherwise;
  }
  return size.ws_col;
}

bool wants_color(int descriptor) {
  return is_tty(descriptor) && !env("NO_COLOR") && env("TERM") != "dumb";
}

}  // namespace abtrain
