// How many steps each rival gets.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "sweep/rivals.h"

namespace abtrain::app {

// Sets the steps of all rivals: to `steps`, or where list.seconds is above 0 to
// as many as take that long, by short runs of this program. Those that cannot
// take part are moved to list.left_out, with the reason. list.config must be
// readable from here. Throws Error(Stopped) on a signal, and Error(Config) with
// what a short run said where it fails for another reason.
void set_lengths(sweep::RivalList& list, std::int64_t steps, Log& log);

}  // namespace abtrain::app
