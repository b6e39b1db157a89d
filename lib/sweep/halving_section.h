// Reads the section `halving` of a sweep file (sweep/halving.h).
#pragma once

#include <vector>

#include "base/value.h"
#include "sweep/assignments.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Problems are appended, each with its place; all rivals must have the same
// number of settings.
Halving read_halving(const Value& section, AssignmentReader& assignments);

// Lets the keys of `set` and `--set` hold for all rivals: takes them out of the rivals' own. A key
// that makes a rival what it is (method.name, ...), and train.steps, are a problem.
void give_all(Halving& halving, const Choice& common, AssignmentReader& assignments);

}  // namespace abtrain::sweep
