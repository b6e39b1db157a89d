#include "data/images/image_folder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "data/images/image_files.h"
#include "data/images/image_listing.h"

namespace abtrain::data {
namespace {

std::string index_folder() {
  const std::string cache = cache_folder();
  return cache.empty() ? "" : cache + "/index";
}

// "train/CLASS/SUB" -> "CLASS"; "" for the split itself.
std::string class_of(const std::string& path) {
  const std::size_t begin = path.find('/');
  return begin == std::string::npos ? ""
                                    : path.substr(begin + 1, path.find('/', begin + 1) - begin - 1);
}

struct Split {
  std::string name;
  std::vector<ListedFolder> folders;  // those of classes
  std::vector<std::string> classes;   // those with at least one image
};

// Moves the folders of one split out of the listing.
Split take_split(const std::string& root, const std::string& name, Listing& listing) {
  Split split{name, {}, {}};
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
      !classes.empty(), DamagedData, "{}/{}: expected a folder for each class, found none", root,
      name);
  ABT_CHECK(
      empty.empty(), DamagedData,
      "{}/{}: expected .jpg or .jpeg files in each folder, found none in {}{}", root, name,
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

void tell(const Listing& listing, const std::string& root, double seconds, Log& log) {
  std::int64_t images = 0, others = 0;
  for (const ListedFolder& folder : listing.folders) {
    // Files next to the class folders belong to no class.
    const bool part = folder.path.find('/') == std::string::npos;
    images += part ? 0 : folder.image_count;
    others += folder.others + (part ? folder.image_count : 0);
  }
  const auto folders = static_cast<std::int64_t>(listing.folders.size());
  log.info(
      "{}: {} images in {:.1f} s; listed {} of {} folders{}{}", root, with_commas(images), seconds,
      with_commas(listing.read), with_commas(folders), listing.index.empty() ? "" : ", index ",
      listing.index);
  if (others > 0) {
    log.info(
        "{}: {}{} skipped: only .jpg and .jpeg files in class folders are read", root,
        with_commas(others), others == 1 ? " file was" : " files were");
  }
  if (!listing.remarks.empty()) {
    log.warning("{}", listing.remarks);
  }
}

}  // namespace

Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log) {
  const Stopwatch watch;
  Listing listing = list_images(root, {"train", "val"}, index_folder());
  if (log != nullptr) {
    tell(listing, root, watch.seconds(), *log);
  }
  Split train = take_split(root, "train", listing);
  Split val = take_split(root, "val", listing);
  const std::vector<std::string> classes = train.classes;
  for (const std::string& name : val.classes) {
    ABT_CHECK(
        std::binary_search(classes.begin(), classes.end(), name), DamagedData,
        "{}/val/{}: expected only classes that also exist in train, found "
        "another{}",
        root, name,
        nearest(name, classes).empty()
            ? ""
            : formatted(" (did you mean '{}'?)", nearest(name, classes)));
  }
  return {
      .name = options.name,
      .found_in = root,
      .channels = 3,
      .height = options.image_size,
      .width = options.image_size,
      .classes = static_cast<std::int64_t>(classes.size()),
      .mean = {},
      .std = {},
      .flips = true,
      .train = images_of(std::move(train), classes, "training images", options, root, log),
      .test = images_of(std::move(val), classes, "images in val", options, root, log)};
}

}  // namespace abtrain::data
