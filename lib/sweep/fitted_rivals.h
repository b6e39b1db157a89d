// Fits the sketches of rivals (the methods to compare, rival_sketches.h) to a configuration.
#pragma once

#include <vector>

#include "sweep/rival_ground.h"
#include "sweep/rival_sketches.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

// Returns the overrides that all rivals share. `sets`: the command line's overrides. Except in a
// plan, overrides of the model stay with each rival, because small networks need other ones.
Sets common_of(const Ground& ground, const Sets& sets);

// Returns the rival, once for each network that it trains (small shapes, sizes of AB-training).
// Names after the first have the suffix of the shape or size. Throws Error(Config) if the rival
// makes no sense for the configuration.
std::vector<RivalPlan> rivals_of(const RivalSketch& sketch, const Ground& ground);

}  // namespace abtrain::sweep
