// Opens ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg (or .jpeg, .png, .webp;
// or ROOT/test or ROOT/valid) as a data set. Where there is no ROOT/train, the
// classes are ROOT/CLASS. Without a part for tests, data.test_share of each
// class becomes the test set, at random, but the same in every run. The number
// of a class is its place among the sorted names in train, as in torchvision's
// ImageFolder.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::data {

// Whether a folder may hold such a data set: it has a folder `train`, or others
// than `val`, `test` and `valid`.
bool holds_image_folder(const std::string& root);

// Sets the name, place, sizes, names of classes and files; the caller sets mean and std.
// Throws Error(DamagedData) for a class without images, or one in val that
// train does not have. `log` may be null.
Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log);

}  // namespace abtrain::data
