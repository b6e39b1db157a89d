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

}  // namespace abtrain::sweep
