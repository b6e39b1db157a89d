// How far the run of a point is, as its folder tells.
#pragma once

#include <string>

#include "sweep/point_runs.h"

namespace abtrain::sweep {

enum class PointState {
  Missing,   // nothing there
  Started,   // stopped, or under way
  Failed,    // ended by what failure.json tells
  Finished,  // summary.json is there
  Foreign,   // another configuration than that of the point: it was changed
};

// "finished"
const char* name_of(PointState state);

PointState state_of(const PointRun& run);
// The same for what is about to be trained: Error(Config) where it is Foreign.
PointState own_state_of(const PointRun& run);

// Of a finished run, 0 to 1. DamagedData where summary.json does not tell.
double accuracy_of(const PointRun& run);

}  // namespace abtrain::sweep
