// Opens ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg as a data set. The
// number of a class is its place among the sorted names in train, as in
// torchvision's ImageFolder.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::data {

// Sets the name, place, sizes and files; the caller sets mean, std and flips.
// Throws Error(DamagedData) for a class without images, or one in val that
// train does not have. `log` may be null.
Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log);

}  // namespace abtrain::data
