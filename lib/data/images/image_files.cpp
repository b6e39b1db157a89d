#include "data/images/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"

namespace abtrain::data {
namespace {

constexpr std::size_t kMaxNamed = 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;

// A missing or unreadable file counts as damaged. A failing disk or a lack of system resources does
// not make images damaged.
[[noreturn]] void fail(const std::string& path) {
  const int error = errno;
  const bool of_the_file = error == ENOENT || error == EACCES || error == ELOOP ||
                           error == ENAMETOOLONG || error == ENOTDIR || error == ENXIO;
  const std::string reason =
      formatted("cannot be read: {}", std::generic_category().message(error));
  throw Error(
      of_the_file ? ErrorKind::DamagedData : ErrorKind::Io,
      of_the_file ? reason : formatted("{}: {}", path, reason));
}

}  // namespace

ImageFiles::ImageFiles(
    std::string what, std::string root, std::vector<ListedFolder> folders, double max_damaged,
    Log* log)
    : what_(std::move(what)),
      root_(std::move(root)),
      folders_(std::move(folders)),
      max_damaged_(max_damaged),
      log_(log) {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    const std::string& names = folders_[i].images;
    ABT_ASSERT(names.size() < UINT32_MAX, "{}", folders_[i].path);
    for (std::size_t at = 0; at < names.size(); at = names.find('\n', at) + 1) {
      files_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(at)});
    }
  }
}

std::string ImageFiles::path(std::int64_t file) const {
  const File& f = files_.at(static_cast<std::size_t>(file));
  const ListedFolder& folder = folders_[f.folder];
  const std::size_t end = folder.images.find('\n', f.name);
  std::string out = root_.empty() ? "" : root_ + "/";
  // The folder is "./CLASS" if the classes lie in the root.
  const std::size_t skipped = folder.path.starts_with("./") ? 2 : 0;
  out.append(folder.path, skipped).append("/");
  return out.append(folder.images, f.name, end - f.name);
}

void ImageFiles::read(std::int64_t file, std::vector<std::uint8_t>& out) const {
  const std::string where = path(file);
  const Descriptor descriptor(::open(where.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!descriptor.is_open() || ::fstat(descriptor.get(), &status) != 0) {
    fail(where);
  }
  ABT_CHECK(S_ISREG(status.st_mode), DamagedData, "is not a regular file");
  ABT_CHECK(status.st_size > 0, DamagedData, "is empty");
  ABT_CHECK(
      status.st_size <= kMaxBytes, DamagedData, "is too large: {}",
      human_bytes(static_cast<double>(status.st_size)));
  out.resize(static_cast<std::size_t>(status.st_size));
  for (std::size_t got = 0; got < out.size();) {
    const ssize_t some = ::read(descriptor.get(), out.data() + got, out.size() - got);
    if (some < 0 && errno != EINTR) {
      fail(where);
    }
    if (some == 0) {
      out.resize(got);
    }
    got += static_cast<std::size_t>(std::max<ssize_t>(some, 0));
  }
}

std::int64_t ImageFiles::allowed() const {
  // Adds a little, so that 0.07 of 100 gives 7.
  const double share = max_damaged_ * static_cast<double>(size()) + 1e-9;
  return max_damaged_ > 0 ? std::max<std::int64_t>(1, std::llround(std::floor(share))) : 0;
}

void ImageFiles::add_damaged(std::int64_t file, const std::string& reason) {
  const std::string where = path(file);
  const std::lock_guard lock(mutex_);
  if (!damaged_.insert(file).second) {
    return;
  }
  if (first_.size() < kMaxNamed) {
    first_.push_back(where);
    reasons_.push_back(formatted("{}: {}", where, reason));
  }
  if (log_ != nullptr) {
    log_->warning("{}: {}; skipped", where, reason);
  }
  const auto count = static_cast<std::int64_t>(damaged_.size());
  ABT_CHECK(
      count <= allowed(), DamagedData,
      "data.max_damaged: {} allows {} of the {} {} to be damaged, found {}:\n  "
      "{}{}",
      max_damaged_, with_commas(allowed()), with_commas(size()), what_, with_commas(count),
      join(reasons_, "\n  "),
      count > std::ssize(reasons_)
          ? formatted("\n  and {} more", with_commas(count - std::ssize(reasons_)))
          : "");
}

bool ImageFiles::is_damaged(std::int64_t file) const {
  const std::lock_guard lock(mutex_);
  return damaged_.contains(file);
}

std::int64_t ImageFiles::damaged() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(damaged_.size());
}

std::vector<std::string> ImageFiles::damaged_paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> sorted = first_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace abtrain::data
