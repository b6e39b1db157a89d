// Finds conflicts among the keys of the config's section `data:`.
#pragma once

#include "base/conflict.h"
#include "data/data_options.h"

namespace abtrain::data {

// Reads no file. Throws ConflictError for an unknown data set.
Conflicts check(const DataOptions& options);

}  // namespace abtrain::data
