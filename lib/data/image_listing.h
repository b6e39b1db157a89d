// The JPEG files of a folder tree, with an index file that saves a second start
// from reading 1.3 million directory entries: only folders whose modification
// time has changed are read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::data {

struct ListedFolder {
  std::string path;  // below the root: "train/CLASS"
  // Modification time in ns since 1970; -1 where it was too young when the
  // folder was read to tell a later change by it.
  std::int64_t changed = -1;
  std::string folders;  // in it: sorted names, each ended by '\n'
  std::string images;   // its JPEG files, likewise
  std::int64_t image_count = 0;
  std::int64_t others = 0;  // files that are no JPEG
};

struct Listing {
  // The named parts and all folders below them; of each class its folders
  // stand together, in the order of their paths.
  std::vector<ListedFolder> folders;
  std::int64_t read = 0;  // folders that were read; the others are as indexed
  std::string index;      // file that holds the list now, "" if none
  std::string remarks;    // why an index was not taken or not written
};

// Lists ROOT/PART/CLASS/**/*.jpg (.jpeg, in any case) of each part. Hidden
// files and folders are left out; links are followed. The index is
// ROOT/.abtrain-index, or a file in `cache_folder` where ROOT cannot be
// written. Throws Error(Io) for a folder that cannot be read, DamagedData for
// links that lead round in circles.
Listing list_images(
    const std::string& root,
    const std::vector<std::string>& parts,
    const std::string& cache_folder);

// The lines of a text whose lines all end in '\n'.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace abtrain::data
