// When methods of local steps synchronise, from the configuration alone: the
// timetable of `local-sgd` and `diloco`.
//
// W data parallel steps, then every worker alone. Of F fragments, fragment f
// begins its synchronisation after W + s steps, s = (f + 1) H / F, and every H
// steps from then on; D steps later its result is applied. So a round ends with
// the last fragment at s = H, 2 H, ..., and D < H / F leaves one under way.
// What could not be applied before the last step does not begin: the end has an
// average of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "methods/method_options.h"

namespace abtrain::methods {

struct LocalPlan {
  std::int64_t warmup = 0;     // W
  std::int64_t interval = 1;   // H
  std::int64_t fragments = 1;  // F; 1 for local-sgd
  std::int64_t delay = 0;      // D; 0 for local-sgd
  std::int64_t steps = 0;      // of the run

  // The fragment that begins after t steps, if one does.
  std::optional<std::int64_t> begins_after(std::int64_t t) const;
  // Fragment f's first begin, and how often it begins in the run.
  std::int64_t first_of(std::int64_t fragment) const {
    return warmup + (fragment + 1) * interval / fragments;
  }
  std::int64_t meetings_of(std::int64_t fragment) const;
  // Running statistics go with the last fragment of a round.
  bool ends_round(std::int64_t fragment) const {
    return fragment + 1 == fragments;
  }
};

bool has_local_steps(const MethodOptions& options);
// Throws Error(Config), naming the key, for what is out of range.
LocalPlan make_local_plan(const MethodOptions& options, const RunLength& run);
// One line for `plan`.
std::string describe(const LocalPlan& plan);
// How often a worker keeps its parameters more than data parallel training
// does; 0 for other methods.
double local_copies(const MethodOptions& options);

}  // namespace abtrain::methods
