// Reads the section `halving` of a sweep file (sweep/halving.h).
#pragma once

#include <vector>

#include "base/value.h"
#include "sweep/assignments.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Appends problems, each with its place. Without the key `settings`, all rivals must have equally
// many moves in `tune`.
Halving read_halving(const Value& section, AssignmentReader& assignments);

// Makes the keys of `set` and `--set` hold for all rivals, by removing them from the rivals' own
// keys. Appends a problem for train.steps, and if this would change a key that makes a rival what
// it is (method.name, ...).
void give_all(Halving& halving, const Choice& common, AssignmentReader& assignments);

}  // namespace abtrain::sweep
