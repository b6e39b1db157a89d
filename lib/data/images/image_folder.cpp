#include "data/images/image_folder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/images/image_files.h"
#include "data/images/image_listing.h"
#include "data/order.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// The part of a listing whose classes lie in the root itself.
constexpr const char* kRoot = ".";

bool has_folder(const std::string& root, const std::string& name) {
  std::error_code ignored;
  return fs::is_directory(root + "/" + name, ignored);
}

std::optional<std::string> find_test_part(const std::string& root) {
  for (const char* name : {"val", "test", "valid"}) {
    if (has_folder(root, name)) {
      return name;
    }
  }
  return std::nullopt;
}

// "train/CLASS/SUB" -> "CLASS"; "" for the split itself.
std::string class_of(const std::string& path) {
  const std::size_t begin = path.find('/');
  return begin == std::string::npos ? ""
                                    : path.substr(begin + 1, path.find('/', begin + 1) - begin - 1);
}

struct Split {
  std::vector<ListedFolder> folders;  // those of classes
  std::vector<std::string> classes;   // those with at least one image
};

// Moves the folders of one split out of the listing.
Split take_split(const std::string& root, const std::string& name, Listing& listing) {
  const std::string where = name == kRoot ? root : root + "/" + name;
  Split split;
  std::vector<std::string> classes;
  for (ListedFolder& folder : listing.folders) {
    if (folder.path == name) {
      classes = lines_of(folder.folders);
    } else if (folder.path.starts_with(name + "/")) {
      const std::string found = class_of(folder.path);
      if (folder.image_count > 0 && (split.classes.empty() || split.classes.back() != found)) {
        split.classes.push_back(found);
      }
      split.folders.push_back(std::move(folder));
    }
  }
  std::vector<std::string> empty;
  std::set_difference(
      classes.begin(), classes.end(), split.classes.begin(), split.classes.end(),
      std::back_inserter(empty));
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(empty.size(), 10));
  ABT_CHECK(
      !classes.empty(), DamagedData, "{}: expected a folder for each class, found none", where);
  ABT_CHECK(
      empty.empty(), DamagedData,
      "{}: expected .jpg, .jpeg, .png or .webp files in each folder, found none in {}{}", where,
      join({empty.begin(), empty.begin() + shown}, ", "), empty.size() > 10 ? ", ..." : "");
  return split;
}

ListedImages images_of(
    Split split, const std::vector<std::string>& classes, const std::string& what,
    const DataOptions& options, const std::string& root, Log* log) {
  std::int64_t count = 0;
  for (const ListedFolder& folder : split.folders) {
    count += folder.image_count;
  }
  ListedImages images;
  images.labels = at::empty({count}, at::kLong);
  images.places = at::arange(count, at::kLong);
  auto* label = images.labels.data_ptr<std::int64_t>();
  for (const ListedFolder& folder : split.folders) {
    const auto place = std::lower_bound(classes.begin(), classes.end(), class_of(folder.path));
    label = std::fill_n(label, folder.image_count, place - classes.begin());
  }
  images.files =
      std::make_shared<ImageFiles>(what, root, std::move(split.folders), options.max_damaged, log);
  return images;
}

// Of each class, the last data.test_share of a permutation for the test set.
std::pair<ListedImages, ListedImages> split_classes(
    const ListedImages& all, std::int64_t classes, double share) {
  std::vector<std::vector<std::int64_t>> of_class(static_cast<std::size_t>(classes));
  const auto* labels = all.labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < all.labels.size(0); ++i) {
    of_class[static_cast<std::size_t>(labels[i])].push_back(i);
  }
  std::vector<std::int64_t> train, test;
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    const auto count = std::ssize(of_class[c]);
    const auto order = permutation(
        count, Random(kSplitSeed, RandomPurpose::Validation, static_cast<std::uint32_t>(c)));
    const std::int64_t held = std::min<std::int64_t>(
        count - 1, std::max<std::int64_t>(1, std::llround(share * static_cast<double>(count))));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto which = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
      (i < count - held ? train : test).push_back(of_class[c][which]);
    }
  }
  const auto images = [&](std::vector<std::int64_t>& which) {
    std::ranges::sort(which);
    return std::get<ListedImages>(chosen(all, at::tensor(which, at::kLong)));
  };
  return {images(train), images(test)};
}

// Files beside the class folders belong to no class.
bool is_part(const ListedFolder& folder) {
  return folder.path.find('/') == std::string::npos;
}

void tell(const Listing& listing, const std::string& root, double seconds, Log& log) {
  std::int64_t images = 0;
  for (const ListedFolder& folder : listing.folders) {
    images += is_part(folder) ? 0 : folder.image_count;
  }
  const auto folders = static_cast<std::int64_t>(listing.folders.size());
  log.info(
      "{}: {} images in {:.1f} s; listed {} of {} folders{}{}", root, with_commas(images), seconds,
      with_commas(listing.read), with_commas(folders), listing.index.empty() ? "" : ", index ",
      listing.index);
  if (!listing.remarks.empty()) {
    log.warning("{}", listing.remarks);
  }
}

// What was skipped.
void add_facts(const Listing& listing, const std::string& root, Account& account) {
  std::int64_t others = 0;
  std::vector<std::string> named;
  for (const ListedFolder& folder : listing.folders) {
    others += folder.others + (is_part(folder) ? folder.image_count : 0);
    const std::string images = is_part(folder) ? folder.images : "";
    for (const std::string& name : lines_of(folder.some_others + images)) {
      if (named.size() < 5) {
        named.push_back(printable(formatted("{}/{}", folder.path, name)));
      }
    }
  }
  if (others > 0) {
    account.facts.push_back(formatted(
        "{}: {}{} skipped, since only .jpg, .jpeg, .png and .webp files in class folders are read: "
        "{}{}",
        root, with_commas(others), others == 1 ? " file was" : " files were", join(named, ", "),
        others > std::ssize(named) ? ", ..." : ""));
  }
}

}  // namespace

bool holds_image_folder(const std::string& root) {
  if (has_folder(root, "train")) {
    return true;
  }
  const bool has_others = std::ranges::any_of(list_folder(root), [](const fs::path& entry) {
    std::error_code ignored;
    return !entry.filename().string().starts_with('.') && fs::is_directory(entry, ignored);
  });
  return has_others && !find_test_part(root);
}

Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log) {
  const Stopwatch watch;
  std::vector<std::string> parts = {has_folder(root, "train") ? "train" : kRoot};
  if (parts[0] != kRoot) {
    if (const auto part = find_test_part(root)) {
      parts.push_back(*part);
    }
  }
  const std::string cache = cache_folder();
  Listing listing = list_images(root, parts, cache.empty() ? "" : cache + "/index");
  if (log != nullptr) {
    tell(listing, root, watch.seconds(), *log);
  }
  Dataset out;
  add_facts(listing, root, out.account);
  Split train = take_split(root, parts[0], listing);
  const std::vector<std::string> classes = train.classes;
  out.name = options.name;
  out.found_in = root;
  out.channels = 3;
  out.height = out.width = options.image_size;
  out.classes = std::ssize(classes);
  out.class_names = classes;
  if (parts.size() == 1) {
    out.account.facts.push_back(formatted(
        "{}: no folder val, test or valid{}; some images of each class are the test set "
        "(data.test_share)",
        root, parts[0] == kRoot ? ", nor train" : ""));
    const ListedImages all = images_of(std::move(train), classes, "images", options, root, log);
    std::tie(out.train, out.test) = split_classes(all, out.classes, options.test_share);
    ABT_CHECK(
        out.test.size() > 0, DamagedData,
        "{}: expected a class with at least two images, of which one is for the test set", root);
    return out;
  }
  const std::string& part = parts[1];
  out.account.facts.push_back(formatted("{}: the test images are those of {}", root, part));
  Split val = take_split(root, part, listing);
  for (const std::string& name : val.classes) {
    ABT_CHECK(
        std::binary_search(classes.begin(), classes.end(), name), DamagedData,
        "{}/{}/{}: expected only classes that also exist in train, found "
        "another{}",
        root, part, name,
        nearest(name, classes).empty()
            ? ""
            : formatted(" (did you mean '{}'?)", nearest(name, classes)));
  }
  out.train = images_of(std::move(train), classes, "training images", options, root, log);
  out.test = images_of(std::move(val), classes, "images in " + part, options, root, log);
  return out;
}

}  // namespace abtrain::data
