// An image classification data set: bytes or, pooled or standardised, floats in
// memory, or JPEG files that are decoded when they are wanted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/data_options.h"

namespace abtrain {
class Log;
}

namespace abtrain::data {

class ImageFiles;

// Labelled images, by `pixels`, by `values` or by `files` and `places`.
struct Images {
  at::Tensor pixels = {};  // N x C x H x W, uint8, contiguous, CPU
  at::Tensor labels = {};  // N, int64, CPU
  std::shared_ptr<ImageFiles> files = {};
  at::Tensor places = {};  // N, int64: which of the files
  at::Tensor values = {};  // as pixels, but fp32: of pixel / 255
  std::int64_t size() const {
    return labels.defined() ? labels.size(0) : 0;
  }
};

// What each pixel of `values` is normalised by: C x H x W each, fp32.
struct Norm {
  at::Tensor mean = {}, std = {};
};

struct Dataset {
  std::string name;
  std::string found_in;  // folder
  // Of an image as the network gets it.
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t classes = 0;
  std::vector<float> mean;  // a channel, of pixel / 255
  std::vector<float> std;
  Norm norm = {};      // where images are values, instead of mean and std
  bool flips = false;  // a horizontal flip keeps the label
  Images train;
  Images test;
};

// Shape of a named set as `options` cut it, without opening it (for `plan`); of
// image-folder the files are listed. Throws as load_dataset() does.
struct DatasetShape {
  std::int64_t channels, height, width, classes, train, test;
};
DatasetShape dataset_shape(const DataOptions& options);
std::vector<std::string> dataset_names();
// 0 for an unknown name.
std::int64_t dataset_channels(const std::string& name);

// Reads a set. `root`: a folder, or "auto" for the usual places (environment
// ABTRAIN_DATA, ./data, ~/.cache/abtrain/data, and for fashion-mnist Debian's
// /usr/share/datasets/fashion-mnist). Throws MissingInput naming every place
// looked at and where to get the set; DamagedData naming file, what was
// expected and what came; Config where the set cannot be cut to data.subset or
// pooled to data.pool. `log`, which must outlive the set, gets what is
// worth telling and a warning for each damaged file.
Dataset load_dataset(const DataOptions& options, Log* log = nullptr);

// Where `name` would be read from, how to get it and how its files must lie,
// for `doctor`; never throws: `found_in` is empty where it is not there.
struct DatasetPlace {
  std::string name, found_in, how_to_get, layout;
};
DatasetPlace find_dataset(const std::string& name, const std::string& root);

// Splits the last `count` of a seeded permutation off the training images.
Images hold_out(Images& train, std::int64_t count, std::uint64_t seed);

}  // namespace abtrain::data
