// Readers for the file formats of the known data sets: idx, with images of any number and size, and
// CIFAR's, with any number of images.
//
// Both readers throw DamagedData if a file does not match its format: magic number, dimensions,
// length, or a label outside 0 .. classes-1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace abtrain::data {

// The number and size of images that the headers must state.
struct Extent {
  std::int64_t count, height, width;

  bool operator==(const Extent&) const = default;
};

// Reads a pair of idx files (big-endian header, then bytes), plain or gzipped: N x 1 x H x W.
ByteImages read_idx(
    const std::string& images_path, const std::string& labels_path, std::int64_t classes,
    const Extent& expected);

// Reads CIFAR's binary files. Each record holds `label_bytes` labels and 3 x 32 x 32 bytes of
// pixels; only the last label, the finest, is used. `count`: records per file.
ByteImages read_cifar(
    const std::vector<std::string>& paths, std::int64_t count, std::int64_t classes,
    std::int64_t label_bytes = 1);

}  // namespace abtrain::data
