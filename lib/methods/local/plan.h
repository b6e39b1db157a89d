// When methods with local steps synchronise, computed from the configuration
// alone: the timetable of `local-sgd` and `diloco`.
//
// After W data-parallel steps, every worker trains alone. Of F fragments,
// fragment f begins its synchronisation after W + s steps, s = (f + 1) H / F,
// and again every H steps; its result is applied D steps later. So a round ends
// with the last fragment at s = H, 2 H, ..., and with D < H / F one fragment is
// under way at a time. A synchronisation that could not be applied before the
// last step does not begin: the end of the run has an average of its own.
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
  std::int64_t steps = 0;      // of the whole run

  // The fragment whose synchronisation begins after t steps, if any.
  std::optional<std::int64_t> begins_after(std::int64_t t) const;
  // Steps after which fragment f first begins, and how often it begins in all.
  std::int64_t first_of(std::int64_t fragment) const {
    return warmup + (fragment + 1) * interval / fragments;
  }
  std::int64_t meetings_of(std::int64_t fragment) const;
  // Running statistics are averaged with the last fragment of a round.
  bool ends_round(std::int64_t fragment) const {
    return fragment + 1 == fragments;
  }
};

bool has_local_steps(const MethodOptions& options);
// Throws Error(Config), naming the key, for a value that is out of range.
LocalPlan make_local_plan(const MethodOptions& options, const RunLength& run);
// The timetable in one line, for `plan`.
std::string describe(const LocalPlan& plan);
// How many copies of its parameters a worker keeps beyond those of
// data-parallel training; 0 for other methods.
double local_copies(const MethodOptions& options);

}  // namespace abtrain::methods
