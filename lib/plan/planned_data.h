// The shape of a configuration's data set, for a plan. The files need not be present.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::plan {

struct PlannedData {
  data::DatasetShape shape;
  // If the files are missing: whose sizes are assumed instead, such as "ImageNet's"; else empty.
  std::string assumed;
};

// Throws as data::dataset_shape() does, except for missing files.
PlannedData planned_data(const data::DataOptions& options);

}  // namespace abtrain::plan
