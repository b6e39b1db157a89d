// Opens a tree of image files as a data set: ROOT/train/CLASS/*.jpg (or .jpeg, .png, .webp), and
// likewise ROOT/val or ROOT/test (image_parts.h lists the names). Without a training folder, the
// classes are ROOT/CLASS.
//
// If test and val both exist, test has the test images and val the validation images. If only one
// of them exists, it has the test images. If neither exists, a random data.test_share of each class
// becomes the test set, the same in every run.
//
// A class's number is its place among the sorted names in train, as in torchvision's ImageFolder.
// The name of a class may have another Unicode normal form in another part.
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
