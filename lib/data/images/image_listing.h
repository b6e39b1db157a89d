// The image files of a folder tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain::data {

struct ListedFolder {
  std::string path = {};     // below the root: "train/CLASS"
  std::string folders = {};  // subfolders: sorted names, each ended by '\n'
  std::string images = {};   // image files: sorted names, each ended by '\n'
  std::int64_t image_count = 0;
  std::int64_t others = 0;          // files whose names are not those of images
  std::string some_others = {};     // the first few names of `others`, in the same form
  std::int64_t other_pictures = 0;  // files in `others` with names of other image formats
  std::int64_t hidden = 0;          // images whose names begin with a dot
};

// Lists one folder, ROOT/PATH. Hidden files and folders are skipped; links are followed. Throws
// Error(Io) if it cannot be read.
ListedFolder list_images_in(const std::string& root, const std::string& path);

// Lists ROOT/PART and all folders below it. The folders of each class, ROOT/PART/CLASS, are
// adjacent, in the order of their paths. The part "." is the root itself. Throws Error(Io) for a
// folder that cannot be read, DamagedData for links that form a cycle.
std::vector<ListedFolder> list_images(const std::string& root, const std::string& part);

// Whether the name ends like that of a JPEG, PNG or WebP file.
bool is_image_name(std::string_view name);

// The lines of a text in which every line ends in '\n'.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace abtrain::data
