// JPEG files that are read when they are wanted, and a count of those that
// turn out damaged.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/log.h"
#include "data/image_listing.h"

namespace abtrain::data {

// Safe to use from several threads.
class ImageFiles {
 public:
  // The images of `folders`, in that order. `what` names them in messages
  // ("training images"); `max_damaged`: share of them that may be damaged.
  // `log` may be null.
  ImageFiles(
      std::string what,
      std::string root,
      std::vector<ListedFolder> folders,
      double max_damaged,
      Log* log);

  std::int64_t size() const {
    return static_cast<std::int64_t>(files_.size());
  }
  std::string path(std::int64_t file) const;
  // The whole file into `out`. Throws Error(DamagedData) with the reason alone
  // where it cannot be read.
  void read(std::int64_t file, std::vector<std::uint8_t>& out) const;

  // Takes note of a damaged file, each once: a warning to the log. Throws
  // Error(DamagedData) when there are more than allowed().
  void add_damaged(std::int64_t file, const std::string& reason);
  bool is_damaged(std::int64_t file) const;
  std::int64_t damaged() const;
  // Paths of the first few that were met, sorted.
  std::vector<std::string> damaged_paths() const;
  // How many may be damaged: the share, but at least one where it is above 0.
  std::int64_t allowed() const;

 private:
  struct File {
    std::uint32_t folder;
    std::uint32_t name;  // where it begins in the folder's images
  };
  std::string what_, root_;
  std::vector<ListedFolder> folders_;
  std::vector<File> files_;
  double max_damaged_;
  Log* log_;
  mutable std::mutex mutex_;
  std::unordered_set<std::int64_t> damaged_;
  std::vector<std::string> first_;    // damaged paths
  std::vector<std::string> reasons_;  // "PATH: reason" of the first few
};

}  // namespace abtrain::data
