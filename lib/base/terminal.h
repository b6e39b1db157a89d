// Whether a file descriptor is a terminal, how wide it is, and whether to use
// colors on it.
#pragma once

namespace abtrain {

bool is_tty(int descriptor);
// The width in columns, or `otherwise` if the descriptor is not a terminal.
int terminal_width(int descriptor, int otherwise = 80);
// True for a terminal other than TERM=dumb, unless NO_COLOR (no-color.org) is
// set.
bool wants_color(int descriptor);

}  // namespace abtrain
