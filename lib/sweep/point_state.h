// How far the run of a sweep's point has got, according to its folder.
#pragma once

#include <string>

#include "sweep/resolve_points.h"

namespace abtrain::sweep {

enum class PointState {
  Missing,   // no config.yaml
  Started,   // stopped, or still running
  Failed,    // there is a failure.json
  Finished,  // there is a summary.json
  Foreign,   // config.yaml was changed and no longer belongs to this point
};

// The state as a word, such as "finished".
const char* name_of(PointState state);

PointState state_of(const PointRun& run);
// True if the run, which must have failed, has diverged.
bool has_diverged(const PointRun& run);
// The state of a run that is about to be trained; throws Error(Config) if it is Foreign.
PointState own_state_of(const PointRun& run);

// The score of a finished run: "88.71 %", or for a text "1.8345 bits per byte". Throws DamagedData
// if summary.json has none.
std::string score_of(const PointRun& run);

}  // namespace abtrain::sweep
