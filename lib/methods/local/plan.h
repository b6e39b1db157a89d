// The timetable of `local-sgd` and `diloco`: when workers that train alone synchronize. It follows
// from the configuration alone.
//
// After W data-parallel steps, every worker trains alone. The model has F fragments. Fragment f =
// 0, 1, ... begins its synchronization after W + s steps, s = (f + 1) H / F, and again every H
// steps; its result is applied D steps later. So a round ends with the last fragment at s = H, 2 H,
// ...; with D < H / F, at most one fragment is in flight. A synchronization that could not be
// applied before the last step does not begin: the end of the run averages anyway.
#pragma once

#include <cstdint>

#include "methods/outer_step.h"
#include "methods/timeline.h"

namespace abtrain::methods {

struct LocalPlan {
  std::int64_t warmup = 0;     // W
  std::int64_t interval = 1;   // H
  std::int64_t fragments = 1;  // F; 1 for local-sgd
  std::int64_t delay = 0;      // D; 0 for local-sgd
  std::int64_t steps = 0;      // of the whole run
  double mixing = 1;           // method.mixing; 1 for local-sgd
  bool with_moments = false;   // moments are averaged as well
  OuterStep outer = {};

  // Whether this is the last fragment of a round, with which running statistics are averaged.
  bool ends_round(std::int64_t fragment) const {
    return fragment + 1 == fragments;
  }
};

// Throws Error(Config), naming the key, for a value that is out of range.
LocalPlan make_local_plan(const MethodOptions& options, const RunLength& run);
Timeline local_timeline(const LocalPlan& plan);

}  // namespace abtrain::methods
