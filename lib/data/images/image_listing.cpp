#include "data/images/image_listing.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"

// Only the one-shot hash, inlined, so that there is nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_line = "abtrain image index 2\n";
constexpr std::string_view checksum_word = "checksum ";
constexpr int deepest = 32;
constexpr std::size_t kMaxOthersNamed = 5;  // other files of a folder
// Time stamps are coarse: a folder that changed this recently may change again
// without a new time stamp.
constexpr std::int64_t young_ns = 2'000'000'000;

using Known = std::map<std::string, ListedFolder, std::less<>>;

std::string hash_of(std::string_view text) {
  return formatted("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string sorted_lines(std::vector<std::string>& names) {
  std::ranges::sort(names);
  return names.empty() ? "" : join(names, "\n") + "\n";
}

// Modification time in ns; -1 if the folder does not exist.
std::int64_t changed_at(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return -1;
  }
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t count_lines(const std::string& text) {
  return std::ranges::count(text, '\n');
}

std::string to_text(const std::vector<ListedFolder>& folders) {
  std::string out(first_line);
  for (const ListedFolder& f : folders) {
    out += formatted(
        "folder {} {} {} {} {} {}\n{}{}{}", f.changed, count_lines(f.folders), f.image_count,
        f.others, count_lines(f.some_others), f.path, f.folders, f.images, f.some_others);
  }
  return formatted("{}{}{}\n", out, checksum_word, hash_of(out));
}

std::optional<Known> from_text(std::string_view text) {
  const std::size_t end = text.rfind(checksum_word);
  if (!text.starts_with(first_line) || end == std::string_view::npos ||
      text.substr(end) != formatted("{}{}\n", checksum_word, hash_of(text.substr(0, end)))) {
    return std::nullopt;
  }
  std::istringstream in(std::string(text.substr(first_line.size(), end - first_line.size())));
  const auto lines = [&](std::int64_t count) {
    std::string out;
    for (std::string line; count > 0 && std::getline(in, line); --count) {
      out.append(line).push_back('\n');
    }
    return out;
  };
  Known known;
  for (std::string word; in >> word;) {
    ListedFolder f;
    std::int64_t folders = 0, some = 0;
    in >> f.changed >> folders >> f.image_count >> f.others >> some;
    in.get();  // the space before the path
    std::getline(in, f.path);
    f.folders = lines(folders);
    f.images = lines(f.image_count);
    f.some_others = lines(some);
    if (!in || f.image_count != count_lines(f.images)) {
      return std::nullopt;
    }
    std::string path = f.path;
    known.emplace(std::move(path), std::move(f));
  }
  return known;
}

ListedFolder read_folder(const fs::path& root, const std::string& path) {
  ListedFolder f;
  f.path = path;
  // Taken before reading, so that a change during the reading is noticed next
  // time.
  f.changed = changed_at(root / path);
  if (f.changed > now_ns() - young_ns) {
    f.changed = -1;
  }
  std::vector<std::string> folders, images, others;
  std::error_code error;
  fs::directory_iterator entry(root / path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.')) {
      continue;
    }
    if (name.find('\n') != std::string::npos) {
      ++f.others;
    } else if (entry->is_directory(ignored)) {
      folders.push_back(std::move(name));
    } else if (is_image_name(name)) {
      images.push_back(std::move(name));
    } else {
      ++f.others;
      others.push_back(std::move(name));
    }
  }
  ABT_CHECK(!error, Io, "{}: cannot be listed: {}", (root / path).string(), error.message());
  f.image_count = static_cast<std::int64_t>(images.size());
  f.folders = sorted_lines(folders);
  f.images = sorted_lines(images);
  std::ranges::sort(others);
  others.resize(std::min(others.size(), kMaxOthersNamed));
  f.some_others = sorted_lines(others);
  return f;
}

// Lists a tree anew, with the folders of the old index that have not changed.
struct Lister {
  const fs::path root;
  Known known;
  Listing& listing;

  void add_part(const std::string& part) {
    const ListedFolder& top = add(part, 0);
    for (const std::string& name : lines_of(top.folders)) {
      const std::size_t before = listing.folders.size();
      add_tree(formatted("{}/{}", part, name), 1);
      std::ranges::sort(std::span(listing.folders).subspan(before), {}, &ListedFolder::path);
    }
  }

 private:
  const ListedFolder& add(const std::string& path, int depth) {
    ABT_CHECK(
        depth <= deepest, DamagedData,
        "{}: expected at most {} nested folders, found more (a link to a "
        "folder above?)",
        (root / path).string(), deepest);
    auto old = known.extract(path);
    if (old && old.mapped().changed >= 0 && old.mapped().changed == changed_at(root / path)) {
      return listing.folders.emplace_back(std::move(old.mapped()));
    }
    ++listing.read;
    return listing.folders.emplace_back(read_folder(root, path));
  }
  void add_tree(const std::string& path, int depth) {
    // A copy of the names, because the vector grows in the loop.
    for (const std::string& name : lines_of(add(path, depth).folders)) {
      add_tree(formatted("{}/{}", path, name), depth + 1);
    }
  }
};

// Loads the index from the first of `files` that holds a valid one.
Known load_index(const std::vector<std::string>& files, Listing& listing) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (file.empty() || !fs::exists(file, ignored)) {
      continue;
    }
    try {
      if (std::optional<Known> known = from_text(read_file(file, kMaxLines))) {
        listing.index = file;
        return std::move(*known);
      }
      listing.remarks += formatted("{} is not a valid index and was ignored. ", file);
    } catch (const Error& error) {
      listing.remarks += formatted("{}. ", error.what());
    }
  }
  return {};
}

// Saves the index to the first of `files` that can be written.
void save_index(const std::vector<std::string>& files, Listing& listing) {
  const std::string text = to_text(listing.folders);
  listing.index.clear();
  std::string failures;
  for (const std::string& file : files) {
    try {
      if (file.empty()) {
        continue;
      }
      make_folders(fs::path(file).parent_path().string());
      atomic_write(file, text);
      listing.index = file;
      return;
    } catch (const Error& error) {
      failures += formatted("{}. ", error.what());
    }
  }
  listing.remarks += formatted("the list of images could not be saved: {}", failures);
}

}  // namespace

bool is_image_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return false;
  }
  const std::string ending = lower_case(name.substr(dot + 1));
  return ending == "jpg" || ending == "jpeg" || ending == "png" || ending == "webp";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split_text(text, '\n');
  lines.pop_back();  // what follows the last '\n'
  return lines;
}

Listing list_images(
    const std::string& root, const std::vector<std::string>& parts,
    const std::string& cache_folder) {
  const std::string beside = root + "/.abtrain-index";
  const std::string cached =
      cache_folder.empty() ? ""
                           : formatted("{}/{}", cache_folder, hash_of(real_path(root).string()));
  Listing listing;
  // A cached index exists only if none could be written next to the data.
  Lister lister{root, load_index({cached, beside}, listing), listing};
  for (const std::string& part : parts) {
    lister.add_part(part);
  }
  // Folders of the old index are gone, or some were read again.
  if (!lister.known.empty() || listing.read > 0) {
    save_index({beside, cached}, listing);
    if (listing.index == beside && !cached.empty()) {
      std::error_code ignored;
      fs::remove(cached, ignored);
    }
  }
  return listing;
}

}  // namespace abtrain::data
