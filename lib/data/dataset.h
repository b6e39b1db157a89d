// An image classification data set held in memory as bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::data {

struct Images {
  at::Tensor pixels;  // N x C x H x W, uint8, contiguous, CPU
  at::Tensor labels;  // N, int64, CPU
  std::int64_t size() const {
    return labels.defined() ? labels.size(0) : 0;
  }
};

struct Dataset {
  std::string name;
  std::string found_in;  // folder
  std::int64_t classes = 0;
  std::vector<float> mean;  // a channel, of pixel / 255
  std::vector<float> std;
  bool flips = false;  // a horizontal flip keeps the label
  Images train;
  Images test;
};

// Shape of a named set without opening it (for `plan`).
struct DatasetShape {
  std::int64_t channels, height, width, classes, train, test;
};
DatasetShape dataset_shape(const std::string& name);
std::vector<std::string> dataset_names();

// Reads a set. `root`: a folder, or "auto" for the usual places (environment
// ABTRAIN_DATA, ./data, ~/.cache/abtrain/data, and for fashion-mnist Debian's
// /usr/share/datasets/fashion-mnist). Throws MissingInput naming every place
// looked at and where to get the set; DamagedData naming file, what was
// expected and what came.
Dataset load_dataset(const std::string& name, const std::string& root);

// Where `name` would be read from and how to get it, for `doctor`; never
// throws: `found_in` is empty where it is not there.
struct DatasetPlace {
  std::string name, found_in, how_to_get;
};
DatasetPlace find_dataset(const std::string& name, const std::string& root);

// Splits the last `count` of a seeded permutation off the training images.
Images hold_out(Images& train, std::int64_t count, std::uint64_t seed);

}  // namespace abtrain::data
