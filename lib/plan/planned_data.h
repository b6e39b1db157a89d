// The shape of a configuration's data set for plans, which need not have it.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::plan {

struct PlannedData {
  data::DatasetShape shape;
  // Where the sizes come from if the files are missing, as a phrase such as
  // "ImageNet's"; empty if they are those of the data set.
  std::string assumed;
};

// Throws as data::dataset_shape() does, but for files that are missing.
PlannedData planned_data(const data::DataOptions& options);

}  // namespace abtrain::plan
