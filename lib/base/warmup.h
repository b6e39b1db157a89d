// Checks that a warm-up ends before its run does, as far as the configuration alone tells, without
// the data.
#pragma once

#include <string>

#include "base/conflict.h"
#include "base/duration.h"

namespace abtrain {

// The length of a run as its configuration states it.
struct StatedLength {
  Duration run;
  std::string key;  // "train.steps" or "train.epochs"
};

// Adds a conflict if the warm-up leaves no `what` in the run. `may_fill`: the warm-up may last as
// long as the run, but not longer. If only the data make their units comparable, adds no conflict.
void check_warmup(
    const std::string& key, const Duration& warmup, const StatedLength& length, const char* what,
    Conflicts& out, bool may_fill = false);

}  // namespace abtrain
