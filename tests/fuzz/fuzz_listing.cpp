// The index of an image folder. Its checksum is made right; the folders' times
// are those that the corpus has.
#include <fcntl.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cinttypes>
#include <cstdio>

#include "data/images/image_listing.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

namespace {

// train/a with two images, train/b with one in c, val/a with one.
std::string make_tree(const TempFolder& folder) {
  for (const char* image : {"train/a/1.jpg", "train/a/2.jpeg", "train/b/c/3.JPG", "val/a/4.jpg"}) {
    folder.add(std::string("tree/") + image, "");
  }
  for (const char* name : {"train/a", "train/b/c", "train/b", "train", "val/a", "val"}) {
    const std::array<timespec, 2> then{timespec{1'500'000'000, 0}, timespec{1'500'000'000, 0}};
    ::utimensat(AT_FDCWD, folder.file(std::string("tree/") + name).c_str(), then.data(), 0);
  }
  return folder.file("tree");
}

}  // namespace

const std::vector<std::string> kWords = {
    "folder ",
    "1500000000000000000 ",
    "-1 ",
    "0 ",
    "1 ",
    "2 ",
    "train",
    "val",
    "train/a",
    "train/b/c",
    "a\n",
    "c\n",
    "1.jpg\n",
    "/",
    "..",
    "../",
    "./",
    "\n",
    "checksum ",
    "abtrain image index 2\n",
    "9223372036854775807 "};

void read_input(std::string_view input) {
  static const TempFolder folder;
  static const std::string root = make_tree(folder);
  std::string text(input);
  std::array<char, 17> hash;
  std::snprintf(
      hash.data(), hash.size(), "%016" PRIx64,
      static_cast<std::uint64_t>(XXH3_64bits(text.data(), text.size())));
  text += std::string("checksum ") + hash.data() + "\n";
  write_file(root + "/.abtrain-index", text);
  refusing({ErrorKind::DamagedData, ErrorKind::Io}, [&] {
    const data::Listing listing = data::list_images(root, {"train", "val"}, "");
    std::string read = listing.remarks;
    for (const data::ListedFolder& f : listing.folders) {
      read += f.path + f.images;
    }
    outcome() = read;
  });
}

}  // namespace abtrain::fuzz
