// Whether a warm-up ends before its run does, as far as the configuration tells
// without the data.
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

// Adds the conflict of a warm-up after which no `what` is left. `may_fill`: it
// may last as long as the run, but not longer. Durations in units that only the
// data make comparable have no conflict here.
void check_warmup(
    const std::string& key, const Duration& warmup, const StatedLength& length, const char* what,
    Conflicts& out, bool may_fill = false);

}  // namespace abtrain
