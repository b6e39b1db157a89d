// Image files that are read on demand, and a count of the damaged ones.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/log.h"
#include "data/images/image_listing.h"

namespace abtrain::data {

// Safe to use from several threads.
class ImageFiles {
 public:
  // Takes the images of `folders`, in that order; the paths are below `root` if it is not "".
  // `what` names the images in messages ("training images"). `max_damaged`: the share of the images
  // that may be damaged. `log` may be null.
  ImageFiles(
      std::string what, std::string root, std::vector<ListedFolder> folders, double max_damaged,
      Log* log);

  std::int64_t size() const {
    return static_cast<std::int64_t>(files_.size());
  }
  std::string path(std::int64_t file) const;
  // Reads the whole file into `out`. Throws Error(DamagedData), with only the reason, if the file
  // is at fault; Error(Io) if the system or the disk is.
  void read(std::int64_t file, std::vector<std::uint8_t>& out) const;

  // Records each damaged file once, with a warning to the log. Throws Error(DamagedData) when there
  // are more than allowed().
  void add_damaged(std::int64_t file, const std::string& reason);
  bool is_damaged(std::int64_t file) const;
  std::int64_t damaged() const;
  // Paths of the first few damaged files, sorted.
  std::vector<std::string> damaged_paths() const;
  // How many files may be damaged: the share, but at least one if the share is above 0.
  std::int64_t allowed() const;

 private:
  struct File {
    std::uint32_t folder;
    std::uint32_t name;  // offset into the folder's images
  };
  std::string what_, root_;
  std::vector<ListedFolder> folders_;
  std::vector<File> files_;
  double max_damaged_;
  Log* log_;
  mutable std::mutex mutex_;
  std::unordered_set<std::int64_t> damaged_;
  std::vector<std::string> first_;    // damaged paths
  std::vector<std::string> reasons_;  // "PATH: reason" for the same files
};

}  // namespace abtrain::data
