#include "base/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/scalars.h"

namespace abtrain {
namespace {

namespace fs = std::filesystem;

// The descriptor in a path such as /proc/self/fd/3, or -1. Such a path must not be opened again:
// the new descriptor would have its own file position, and a rename would not affect the file
// behind the old one.
int descriptor_of(const fs::path& folder, const std::string& name) {
  std::error_code error;
  if (folder != fs::canonical("/proc/self/fd", error) || error) {
    return -1;
  }
  int descriptor = -1;
  return read_number(name, descriptor) ? descriptor : -1;
}

bool is_stream(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

OutputPlace find_output(const std::string& path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  if (path == "-") {
    return {path, true, STDOUT_FILENO};
  }
  OutputPlace place{path, is_stream(path), -1};
  for (int links = 0; links <= kMaxLinks; ++links) {
    const fs::path at = place.path;
    std::error_code error;
    const fs::path folder =
        fs::canonical(at.has_parent_path() ? at.parent_path() : fs::path("."), error);
    place.descriptor = error ? -1 : descriptor_of(folder, at.filename());
    if (place.descriptor >= 0) {
      place.is_stream = true;
      return place;
    }
    if (error || !fs::is_symlink(folder / at.filename(), error)) {
      // A stream is opened by the name that the user gave: links in /proc lead
      // to places that have no name.
      return place.is_stream ? OutputPlace{path, true, -1} : place;
    }
    place.path = (folder / fs::read_symlink(at, error)).string();
  }
  throw Error(
      ErrorKind::Io, formatted("cannot write '{}': too many levels of symbolic links", path));
}

bool is_standard_output(const std::string& path) {
  return find_output(path).descriptor == STDOUT_FILENO;
}

void check_replaceable(const std::string& path, const OutputKind& kind, bool force) {
  constexpr std::size_t kBegin = 4096;
  const OutputPlace place = find_output(path);
  std::error_code ignored;
  ABT_CHECK(
      !fs::is_directory(place.path, ignored), Usage,
      "{}: expected a file to write, but '{}' is a folder", kind.option, path);
  if (force || place.is_stream || !fs::exists(place.path, ignored)) {
    return;
  }
  std::ifstream file(place.path, std::ios::binary);
  std::string begin(kBegin, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  const bool is_empty = fs::file_size(place.path, ignored) == 0;
  ABT_CHECK(
      is_empty || kind.matches(begin), Usage,
      "{}: '{}' already exists and is not {}; --force replaces it", kind.option, path, kind.what);
}

}  // namespace abtrain
