// Opens a tree of image files as a data set: ROOT/train/CLASS/*.jpg (or .jpeg, .png, .webp) and
// ROOT/val or ROOT/test likewise (the names: image_parts.h). Where there is no folder for training,
// the classes are ROOT/CLASS. The test images are in test; val then has the validation images. A
// part for tests alone may have either name, and without one, data.test_share of each class becomes
// the test set, at random, but the same in every run. The number of a class is its place among the
// sorted names in train, as in torchvision's ImageFolder. The names of one class in two parts may
// differ in their Unicode normal form.
#pragma once

#include <string>

#include "data/dataset.h"

namespace abtrain::data {

// True if the root has folders. They may be classes or parts.
bool holds_folders(const std::string& root);

// Sets the name, place, sizes, names of classes and files; the caller sets mean and std.
// Throws Error(DamagedData) for a class of the training images without images, for a class that
// only another part has, and as find_image_parts() does. `log` may be null.
Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log);

}  // namespace abtrain::data
