// Opens a tree of image files as a data set: ROOT/train/CLASS/*.jpg (or .jpeg, .png, .webp), and
// likewise ROOT/val or ROOT/test (image_parts.h lists the names). Without a training folder, the
// classes are ROOT/CLASS.
//
// The test images are in test; then val has the validation images. If only one of the two exists,
// it has the test images. If neither exists, a random data.test_share of each class becomes the
// test set, the same in every run.
//
// A class's number is its place among the sorted names in train, as in torchvision's ImageFolder. A
// class's names in two parts may differ in their Unicode normal form.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::data {

// True if the root has folders, whether classes or parts.
bool holds_folders(const std::string& root);

// Sets the name, place, sizes, class names and files; the caller sets mean and std. Throws
// Error(DamagedData) for a training class without images, for a class that only another part has,
// and as find_image_parts() does. `log` may be null.
Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log);

}  // namespace abtrain::data
