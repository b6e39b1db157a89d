// The shape of a configuration's data set, for plans, which do not need the files.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::plan {

struct PlannedData {
  data::DatasetShape shape;
  // If the files are missing, where the sizes come from, as a phrase such as "ImageNet's"; else
  // empty.
  std::string assumed;
};

// Throws as data::dataset_shape() does, except for missing files.
PlannedData planned_data(const data::DataOptions& options);

}  // namespace abtrain::plan
