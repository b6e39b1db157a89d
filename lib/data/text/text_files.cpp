#include "data/text/text_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/byte_file.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

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
  return formatted("{}/text/{}", folder, hash_text(hash_of_text(about)));
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

struct Walk {
  std::vector<std::string> names;  // files, as paths below the folder
  std::vector<std::string> skipped;
};

// Reads each folder only once, because links may form circles. `below`: the folder's path below the
// text's folder, "" or ended by '/'.
void walk(const fs::path& folder, const std::string& below, std::set<fs::path>& seen, Walk& found) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator entry(folder, error); !error && entry != end(entry);
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  ABT_CHECK(!error, Io, "{}: cannot be listed: {}", folder.string(), error.message());
  std::ranges::sort(entries);  // of two links to a folder, the same one is read on any disk
  for (const fs::directory_entry& entry : entries) {
    const std::string own = entry.path().filename().string();
    const std::string name = below + own;
    std::error_code dead;
    const fs::file_status status = entry.status(dead);
    if (own.starts_with(".")) {
      continue;
    }
    if (fs::is_directory(status)) {
      if (seen.insert(real_path(entry.path())).second) {
        walk(entry.path(), name + "/", seen, found);
      } else {
        found.skipped.push_back(name + " (a link to a folder that is read already)");
      }
    } else if (fs::is_regular_file(status)) {
      found.names.push_back(name);
    } else {
      found.skipped.push_back(
          name + (entry.is_symlink(dead) ? " (a link to nothing)" : " (not a file)"));
    }
  }
}

bool has_token_name(const std::string& name) {
  return name.ends_with(".bin") || name.ends_with(".bin.gz") || name.ends_with(".bin.dz");
}

// The kind of a file, from its first bytes.
struct Beginning {
  bool is_gzip, has_zeros, is_text;
};

Beginning beginning_of(const std::string& path) {
  ByteFile file(path);
  std::vector<std::uint8_t> bytes(4096);
  bytes.resize(file.read_some(bytes));
  constexpr std::size_t kEnough = 64;  // fewer bytes of tokens may look like text by chance
  const auto is_printed = [](std::uint8_t byte) {
    return (byte >= ' ' && byte < 0x7F) || byte == '\n' || byte == '\r' || byte == '\t';
  };
  return {
      file.is_gzip(), std::ranges::find(bytes, 0) != bytes.end(),
      bytes.size() >= kEnough && std::ranges::all_of(bytes, is_printed)};
}

}  // namespace

std::vector<TextFile> text_files(
    const std::string& path, TokenType tokens, Log* log, Account& account) {
  ABT_CHECK(fs::exists(path), MissingInput, "{}: no such file or folder", path);
  const bool is_folder = fs::is_directory(path);
  Walk found{{}, {}};
  if (is_folder) {
    std::set<fs::path> seen = {real_path(path)};
    walk(path, "", seen, found);
    std::ranges::sort(found.names);
  } else {
    found.names = {""};
  }
  if (is_folder && tokens != TokenType::Bytes) {
    const auto others = std::ranges::stable_partition(found.names, has_token_name);
    for (const std::string& name : others) {
      found.skipped.push_back(name + " (not a .bin file, as tokens are in)");
    }
    found.names.erase(others.begin(), others.end());
  }
  if (!found.skipped.empty()) {
    account.facts.push_back(formatted("{}: skipped: {}", path, first_of(found.skipped)));
  }
  ABT_CHECK(
      !found.names.empty(), MissingInput, "{}: expected {} in this folder, found none{}", path,
      tokens == TokenType::Bytes ? "files" : "a .bin file of tokens",
      found.skipped.empty() ? "" : "; skipped: " + first_of(found.skipped));
  std::vector<TextFile> files;
  std::vector<std::string> binary;
  for (const std::string& name : found.names) {
    const std::string each = name.empty() ? path : (fs::path(path) / name).string();
    const auto [is_gzip, has_zeros, is_text] = beginning_of(each);
    ABT_CHECK(
        tokens == TokenType::Bytes || !is_text, DamagedData,
        "{}: expected tokens, as data.tokens says, found text; for a text, data.tokens is bytes",
        each);
    if (tokens == TokenType::Bytes && has_zeros) {
      binary.push_back(each);
    }
    files.push_back({each, is_gzip ? unpacked(each, log) : each, name});
  }
  if (!binary.empty()) {
    account.doubts.push_back(formatted(
        "{}: no text has zero bytes, as are in {}; of files of tokens, data.tokens says their "
        "type: uint16 or uint32",
        path, first_of(binary)));
  }
  return files;
}

}  // namespace abtrain::data
