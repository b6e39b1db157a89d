// The known data sets, and everything that distinguishes them. To add one, add a row to the table
// in known_sets.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace abtrain::data {

struct KnownSet {
  std::string name;
  DatasetShape shape = {};
  std::vector<float> mean = {}, std = {};
  // Names of plain files; NAME.gz and NAME.dz are found, too.
  std::vector<std::string> train_files = {}, test_files = {};
  std::vector<std::string> folders = {};  // searched under a root, besides the root itself
  std::vector<std::string> system_places = {};
  std::string how_to_get;
  std::string layout;  // how the files are laid out, one line each
  // Reads `count` images in all from the paths of train_files or test_files. Null for other kinds
  // of data sets: a tree of image files (train_files names its training part), a text (its file, if
  // known, is train_files.front()), or a user's own arrays.
  ByteImages (*read)(
      const KnownSet& set, const std::vector<std::string>& paths, std::int64_t count) = nullptr;

  bool is_text = false;
  bool is_arrays = false;
  std::vector<std::string> class_names = {};

  bool has_files() const {
    return read == nullptr && !is_text && !is_arrays;
  }
};

std::vector<KnownSet> known_sets();

// The message for a wrong number of values in data.mean or data.std.
std::string channels_wanted(std::int64_t channels, std::size_t given);

// Throws ConflictError for an unknown name.
KnownSet find_set(const std::string& name);

}  // namespace abtrain::data
