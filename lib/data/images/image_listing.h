// The image files of a folder tree, with an index file that saves later starts
// from reading 1.3 million directory entries: only folders whose modification
// time has changed are read again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain::data {

struct ListedFolder {
  std::string path = {};  // below the root: "train/CLASS"
  // Modification time in ns since 1970; -1 if it was so recent when the folder
  // was read that a later change might not show in it.
  std::int64_t changed = -1;
  std::string folders = {};  // subfolders: sorted names, each ended by '\n'
  std::string images = {};   // its image files, likewise
  std::int64_t image_count = 0;
  std::int64_t others = 0;       // files that are no images by their names
  std::string some_others = {};  // the first few of them, likewise
};

struct Listing {
  // The named parts and all folders below them. The folders of each class are
  // adjacent, in the order of their paths.
  std::vector<ListedFolder> folders;
  std::int64_t read = 0;  // folders that were read; the rest are as indexed
  std::string index;      // file that now holds the list, "" if none
  std::string remarks;    // why an index was not used or not written
};

// Lists ROOT/PART/CLASS/**/*.jpg (.jpeg, .png, .webp, in any case) for each
// part; the part "." is the root itself, whose folders are the classes. Hidden
// files and folders are skipped; links are followed. The index is
// ROOT/.abtrain-index, or a file in `cache_folder` if ROOT is not writable.
// Throws Error(Io) for a folder that cannot be read, DamagedData for links that
// form a cycle.
Listing list_images(
    const std::string& root, const std::vector<std::string>& parts,
    const std::string& cache_folder);

// Whether the name ends as that of a JPEG, PNG or WebP file.
bool is_image_name(std::string_view name);

// The lines of a text in which every line ends in '\n'.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace abtrain::data
