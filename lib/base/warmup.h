// Checks that a warm-up ends before its run does, as far as the configuration tells without the
// data.
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

// Adds a conflict if the warm-up leaves no `what`. `may_fill`: the warm-up may last as long as the
// run, but not longer. Units that only the data make comparable give no conflict.
void check_warmup(
    const std::string& key, const Duration& warmup, const StatedLength& length, const char* what,
    Conflicts& out, bool may_fill = false);

}  // namespace abtrain
