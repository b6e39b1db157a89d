// Checks that a warm-up ends before the run does, as far as that can be told without the data.
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

// Adds a conflict if nothing of the run is left after the warm-up. `what`: the missing part, for
// the message. `may_fill`: the warm-up may last as long as the run. Adds none if one is in steps
// and the other in epochs, which cannot be compared without the data.
void check_warmup(
    const std::string& key, const Duration& warmup, const StatedLength& length, const char* what,
    Conflicts& out, bool may_fill = false);

}  // namespace abtrain
