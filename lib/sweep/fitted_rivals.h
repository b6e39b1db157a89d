// The sketches of rivals, fitted to a configuration.
#pragma once

#include <vector>

#include "sweep/rival_ground.h"
#include "sweep/rival_sketches.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

// The overrides of all rivals; `sets`: those of the command line. Those of the model stand with
// each rival, since the small networks have others.
Sets common_of(const Ground& ground, const Sets& sets);

// The rival, in each shape of its network if that has some. The first shape needs no mark in the
// name. Throws Error(Config) where the rival makes no sense for the configuration.
std::vector<RivalPlan> rivals_of(const RivalSketch& sketch, const Ground& ground);

}  // namespace abtrain::sweep
