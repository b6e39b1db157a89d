#include "data/images/image_listing.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxOthersNamed = 5;  // non-image files of a folder

constexpr std::string_view kPictures[] = {"jpg", "jpeg", "png", "webp"};
constexpr std::string_view kOtherPictures[] = {"bmp", "tif", "tiff", "gif",  "ppm", "pgm",
                                               "jp2", "jxl", "avif", "heic", "heif"};

bool ends_as_one_of(std::string_view name, std::span<const std::string_view> endings) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return false;
  }
  return std::ranges::find(endings, lower_case(name.substr(dot + 1))) != endings.end();
}

std::string sorted_lines(std::vector<std::string>& names) {
  std::ranges::sort(names);
  return names.empty() ? "" : join(names, "\n") + "\n";
}

void add_tree(
    const std::string& root, const std::string& path, int depth, std::vector<ListedFolder>& out) {
  ABT_CHECK(
      depth <= kMaxDepth, DamagedData,
      "{}/{}: expected at most {} nested folders, found more (a link to a "
      "folder above?)",
      root, path, kMaxDepth);
  out.push_back(list_images_in(root, path));
  // Copies the names, because the vector grows in the loop.
  for (const std::string& name : lines_of(out.back().folders)) {
    add_tree(root, formatted("{}/{}", path, name), depth + 1, out);
  }
}

}  // namespace

ListedFolder list_images_in(const std::string& root, const std::string& path) {
  ListedFolder f;
  f.path = path;
  const fs::path folder = fs::path(root) / path;
  std::vector<std::string> folders, images, others;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.')) {
      f.hidden += is_image_name(name) ? 1 : 0;
    } else if (name.find('\n') != std::string::npos) {
      ++f.others;
    } else if (entry->is_directory(ignored)) {
      folders.push_back(std::move(name));
    } else if (is_image_name(name)) {
      images.push_back(std::move(name));
    } else {
      ++f.others;
      f.other_pictures += ends_as_one_of(name, kOtherPictures) ? 1 : 0;
      others.push_back(std::move(name));
    }
  }
  ABT_CHECK(!error, Io, "{}: cannot be listed: {}", folder.string(), error.message());
  f.image_count = static_cast<std::int64_t>(images.size());
  f.folders = sorted_lines(folders);
  f.images = sorted_lines(images);
  std::ranges::sort(others);
  others.resize(std::min(others.size(), kMaxOthersNamed));
  f.some_others = sorted_lines(others);
  return f;
}

std::vector<ListedFolder> list_images(const std::string& root, const std::string& part) {
  std::vector<ListedFolder> out = {list_images_in(root, part)};
  for (const std::string& name : lines_of(out.front().folders)) {
    const std::size_t before = out.size();
    add_tree(root, formatted("{}/{}", part, name), 1, out);
    std::ranges::sort(std::span(out).subspan(before), {}, &ListedFolder::path);
  }
  return out;
}

bool is_image_name(std::string_view name) {
  return ends_as_one_of(name, kPictures);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split_text(text, '\n');
  lines.pop_back();  // the empty text after the last '\n'
  return lines;
}

}  // namespace abtrain::data
