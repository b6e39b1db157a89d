// Fits the sketches of rivals to a configuration.
#pragma once

#include <vector>

#include "sweep/rival_ground.h"
#include "sweep/rival_sketches.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

// The overrides that all rivals share. `sets`: those of the command line. Overrides of the model
// are kept with each rival, since the small networks have others.
Sets common_of(const Ground& ground, const Sets& sets);

// The rival, once for each shape of its network if it has several. The first shape gets no suffix
// in its name. Throws Error(Config) if the rival makes no sense for the configuration.
std::vector<RivalPlan> rivals_of(const RivalSketch& sketch, const Ground& ground);

}  // namespace abtrain::sweep
