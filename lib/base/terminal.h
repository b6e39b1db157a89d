// What stands behind a file descriptor: a terminal, its width, its colours.
#pragma once

namespace abtrain {

bool is_tty(int descriptor);
// Columns; `otherwise` where it is no terminal.
int terminal_width(int descriptor, int otherwise = 80);
// A terminal that is not dumb, and NO_COLOR (no-color.org) is not set.
bool wants_color(int descriptor);

}  // namespace abtrain
