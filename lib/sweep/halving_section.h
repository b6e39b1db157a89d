// Reads the section `halving` of a sweep file (sweep/halving.h).
#pragma once

#include <vector>

#include "base/value.h"
#include "sweep/assignments.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Appends problems, each with its place. All rivals must have the same number of settings.
Halving read_halving(const Value& section, AssignmentReader& assignments);

// Makes the keys of `set` and `--set` hold for all rivals, by removing them from the rivals' own
// keys. Keys that make a rival what it is (method.name, ...), and train.steps, are a problem.
void give_all(Halving& halving, const Choice& common, AssignmentReader& assignments);

}  // namespace abtrain::sweep
