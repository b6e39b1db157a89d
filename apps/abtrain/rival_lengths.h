// Chooses the number of steps of each rival (a method to compare).
#pragma once

#include <cstdint>

#include "base/log.h"
#include "sweep/rivals.h"

namespace abtrain::app {

// Sets the steps of all rivals: to `steps` or, if list.seconds is above 0, to the number that takes
// so long, measured with short runs of this program. Moves rivals that cannot take part to
// list.left_out, with the reason. list.config must be readable from the current folder. Throws
// Error(Stopped) on a signal, and Error(Config) with the output of a short run that fails for
// another reason.
void set_lengths(sweep::RivalList& list, std::int64_t steps, Log& log);

}  // namespace abtrain::app
