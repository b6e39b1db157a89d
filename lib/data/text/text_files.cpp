#include "data/text/text_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/byte_file.h"

// Only the one-shot hash, inlined, so that there is nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// Where the unpacked file belongs.
std::string unpacked_path(const std::string& path) {
  const std::string folder = cache_folder();
  ABT_CHECK(
      !folder.empty(), Io,
      "{}: there is no cache folder to unpack this gzip file into; set XDG_CACHE_HOME or HOME",
      path);
  struct stat status {};
  ::stat(path.c_str(), &status);
  const std::string about = formatted(
      "{}\n{}\n{}.{}", real_path(path).string(), status.st_size, status.st_mtim.tv_sec,
      status.st_mtim.tv_nsec);
  return formatted("{}/text/{:016x}", folder, XXH3_64bits(about.data(), about.size()));
}

std::string unpacked(const std::string& path, Log* log) {
  const std::string place = unpacked_path(path);
  if (fs::exists(place)) {
    return place;
  }
  if (log != nullptr) {
    log->info("unpacking {} to {}", path, place);
  }
  make_folders(fs::path(place).parent_path().string());
  ByteFile from(path);
  atomic_write(place, [&](const WritePiece& write) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    std::vector<std::uint8_t> piece(kPiece);
    std::size_t got = 0;
    do {
      got = from.read_some(piece);
      write({reinterpret_cast<const char*>(piece.data()), got});
    } while (got == piece.size());
    from.finish();
  });
  return place;
}

}  // namespace

std::vector<TextFile> text_files(const std::string& path, Log* log) {
  ABT_CHECK(fs::exists(path), MissingInput, "{}: no such file or folder", path);
  std::vector<std::string> paths;
  if (fs::is_directory(path)) {
    fs::recursive_directory_iterator entry(path);
    for (; entry != fs::end(entry); ++entry) {
      if (entry->path().filename().string().starts_with(".")) {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file()) {
        paths.push_back(entry->path().string());
      }
    }
    ABT_CHECK(!paths.empty(), MissingInput, "{}: expected files in this folder, found none", path);
    std::ranges::sort(paths);
  } else {
    paths.push_back(path);
  }
  std::vector<TextFile> files;
  for (const std::string& each : paths) {
    files.push_back({each, ByteFile(each).is_gzip() ? unpacked(each, log) : each});
  }
  return files;
}

}  // namespace abtrain::data
