#include "data/images/image_folder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/scalars.h"
#include "data/images/image_files.h"
#include "data/images/image_listing.h"
#include "data/images/image_parts.h"
#include "data/order.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// Returns the name in Unicode's composed form, because macOS stores letters and accents separately.
std::string composed(const std::string& name) {
  utf8proc_uint8_t* form = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(name.c_str()));
  const std::string out = form == nullptr ? name : reinterpret_cast<const char*>(form);
  std::free(form);  // NOLINT(cppcoreguidelines-no-malloc): the library has allocated it
  return out;
}

// "train/CLASS/SUB" -> "CLASS"
std::string class_of(const std::string& path) {
  const std::size_t begin = path.find('/') + 1;
  return path.substr(begin, path.find('/', begin) - begin);
}

constexpr std::size_t kShown = 10;  // names in a message

struct Split {
  std::string where;                  // the folder that holds the classes
  ListedFolder top;                   // the files and folders in it
  std::vector<ListedFolder> folders;  // the folders of the classes
  std::vector<std::string> classes;   // classes with at least one image
  std::vector<std::string> empty;     // classes without images
};

Split read_split(const std::string& root, const std::string& part) {
  Split split{part == kRootPart ? root : root + "/" + part, {}, list_images(root, part), {}, {}};
  split.top = std::move(split.folders.front());
  split.folders.erase(split.folders.begin());
  for (const ListedFolder& folder : split.folders) {
    const std::string found = class_of(folder.path);
    if (folder.image_count > 0 && (split.classes.empty() || split.classes.back() != found)) {
      split.classes.push_back(found);
    }
  }
  const std::vector<std::string> all = lines_of(split.top.folders);
  std::set_difference(
      all.begin(), all.end(), split.classes.begin(), split.classes.end(),
      std::back_inserter(split.empty));
  ABT_CHECK(
      !all.empty(), DamagedData, "{}: expected a folder for each class, found none", split.where);
  return split;
}

// The number of each class, by its composed name.
using ClassNumbers = std::map<std::string, std::int64_t>;

ClassNumbers number_classes(const Split& train) {
  ABT_CHECK(
      train.empty.empty(), DamagedData,
      "{}: each folder is a class and needs .jpg, .jpeg, .png or .webp files; found none in {}. "
      "Remove folders that are not classes",
      train.where, first_of(train.empty, kShown));
  ClassNumbers numbers;
  for (const std::string& name : train.classes) {
    const auto number = static_cast<std::int64_t>(numbers.size());
    ABT_CHECK(
        numbers.emplace(composed(name), number).second, DamagedData,
        "{}: expected one folder for each class, found two named '{}' that differ only in Unicode "
        "normalization (NFC and NFD); merge them",
        train.where, printable(name));
  }
  return numbers;
}

// The classes for which a part has no images. Throws if the part has a class that the training
// images lack.
std::vector<std::string> absent_classes(
    const Split& part, const Split& train, const ClassNumbers& numbers) {
  ABT_CHECK(
      !part.classes.empty(), DamagedData,
      "{}: expected .jpg, .jpeg, .png or .webp files in the folders of its classes, found none",
      part.where);
  std::vector<std::string> absent = train.classes;
  for (const std::string& name : part.classes) {
    const auto number = numbers.find(composed(name));
    const std::string near = nearest(name, train.classes);
    ABT_CHECK(
        number != numbers.end(), DamagedData,
        "{}/{}: expected only the classes of {}, found another one{}", part.where, printable(name),
        fs::path(train.where).filename().string(),
        near.empty() ? "" : formatted(" (did you mean '{}'?)", printable(near)));
    absent[static_cast<std::size_t>(number->second)].clear();
  }
  std::erase(absent, "");
  return absent;
}

ListedImages images_of(
    Split split, const ClassNumbers& numbers, const std::string& what, const DataOptions& options,
    const std::string& root, Log* log) {
  std::int64_t count = 0;
  for (const ListedFolder& folder : split.folders) {
    count += folder.image_count;
  }
  ListedImages images;
  images.labels = at::empty({count}, at::kLong);
  images.places = at::arange(count, at::kLong);
  auto* label = images.labels.data_ptr<std::int64_t>();
  for (const ListedFolder& folder : split.folders) {
    if (folder.image_count > 0) {
      label = std::fill_n(label, folder.image_count, numbers.at(composed(class_of(folder.path))));
    }
  }
  images.files =
      std::make_shared<ImageFiles>(what, root, std::move(split.folders), options.max_damaged, log);
  return images;
}

// Splits each class: the last data.test_share of a permutation is the test set.
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

// Adds facts about the files of a part that were not read.
void add_skipped(const Split& split, Account& account) {
  std::int64_t others = split.top.image_count, pictures = 0, hidden = 0;
  std::vector<std::string> named;
  const auto name_some = [&](const std::string& folder, const std::string& names) {
    for (const std::string& name : lines_of(names)) {
      if (named.size() < kShown) {
        named.push_back(printable(formatted("{}/{}", folder, name)));
      }
    }
  };
  const auto add = [&](const ListedFolder& folder) {
    others += folder.others;
    pictures += folder.other_pictures;
    hidden += folder.hidden;
    name_some(folder.path, folder.some_others);
  };
  // Files beside the class folders belong to no class.
  name_some(split.top.path, split.top.images);
  add(split.top);
  std::ranges::for_each(split.folders, add);
  const auto counted = [](std::int64_t count, const char* one, const char* many) {
    return formatted("{} {}", with_commas(count), count == 1 ? one : many);
  };
  if (others > 0) {
    account.facts.push_back(formatted(
        "{}: {} skipped, because only .jpg, .jpeg, .png and .webp files in class folders are read: "
        "{}{}",
        split.where, counted(others, "file was", "files were"), join(named, ", "),
        others > std::ssize(named) ? ", ..." : ""));
  }
  if (hidden > 0) {
    account.facts.push_back(formatted(
        "{}: {} skipped, because names that start with a dot are hidden", split.where,
        counted(hidden, "image was", "images were")));
  }
  if (pictures > 0) {
    account.doubts.push_back(formatted(
        "{}: {} skipped: BMP, TIFF, GIF and other image formats are not read; convert them to "
        "PNG",
        split.where, counted(pictures, "file was", "files were")));
  }
}

// Adds a doubt if the classes, or the parts, may lie one level deeper than this folder; throws if
// they must.
void check_depth(const Split& train, const std::string& part, Account& account) {
  std::vector<std::string> inside;  // the folders in each folder of a class
  for (const ListedFolder& folder : train.folders) {
    if (std::ranges::count(folder.path, '/') == 1) {
      if (folder.image_count > 0) {
        return;
      }
      inside.push_back(folder.folders);
    }
  }
  const bool is_root = part == kRootPart;
  const std::string names = first_of(lines_of(inside.front()), kShown);
  const std::string only = printable(train.classes.front());
  ABT_CHECK(
      inside.size() > 1, DamagedData,
      "{}: expected a folder for each class, found only {}, which contains the folders {}. {}",
      train.where, only, names,
      is_root ? formatted("Set data.root: {}/{}", train.where, only)
              : "Move the class folders up one level");
  if (is_root && std::ranges::count(inside, inside.front()) == std::ssize(inside)) {
    account.doubts.push_back(formatted(
        "{}: {} are read as classes, but each contains the folders {}; if those are the "
        "classes, name the parts of the data set train, val and test",
        train.where, first_of(train.classes, kShown), names));
  }
}

std::string parts_fact(const ImageParts& parts, const Dataset& set, double share) {
  const std::string root = set.found_in;
  if (parts.test.empty()) {
    return formatted(
        "{}: there is no test folder, so {} of each class become the test set "
        "(data.test_share)",
        parts.train == kRootPart ? root : root + "/" + printable(parts.train), print_number(share));
  }
  return formatted(
      "{}: training images come from {}, test images from {}{}", root, printable(parts.train),
      printable(parts.test),
      parts.validation.empty()
          ? ""
          : formatted(
                "; the {} images of {} serve for validation", with_commas(set.validation.size()),
                printable(parts.validation)));
}

}  // namespace

bool holds_folders(const std::string& root) {
  return std::ranges::any_of(list_folder(root), [](const fs::path& entry) {
    std::error_code ignored;
    return !entry.filename().string().starts_with('.') && fs::is_directory(entry, ignored);
  });
}

Dataset open_image_folder(const DataOptions& options, const std::string& root, Log* log) {
  ImageParts parts = find_image_parts(root);
  Dataset out;
  out.account.doubts = std::move(parts.doubts);
  if (parts.test.empty()) {
    parts.test = std::exchange(parts.validation, "");
  } else if (options.validation > 0 && !parts.validation.empty()) {
    out.account.doubts.push_back(formatted(
        "{}/{} is not read, because data.validation holds out training images; 0 uses this folder "
        "instead",
        root, printable(std::exchange(parts.validation, ""))));
  }
  Split train = read_split(root, parts.train);
  const ClassNumbers numbers = number_classes(train);
  check_depth(train, parts.train, out.account);
  out.name = options.name;
  out.found_in = root;
  out.channels = 3;
  out.height = out.width = options.image_size;
  out.classes = std::ssize(train.classes);
  out.class_names = train.classes;
  if (out.classes == 1) {
    out.account.doubts.push_back(
        formatted("{}: {} is the only class", train.where, printable(train.classes.front())));
  }
  add_skipped(train, out.account);
  const auto read_part = [&](const std::string& part) -> Examples {
    if (part.empty()) {
      return {};
    }
    Split split = read_split(root, part);
    const std::vector<std::string> absent = absent_classes(split, train, numbers);
    add_skipped(split, out.account);
    if (!absent.empty()) {
      out.account.doubts.push_back(formatted(
          "{}: no images for {} of the {} classes: {}", split.where, absent.size(), out.classes,
          first_of(absent, kShown)));
    }
    return images_of(std::move(split), numbers, "images in " + part, options, root, log);
  };
  out.test = read_part(parts.test);
  out.validation = read_part(parts.validation);
  const bool has_test = !parts.test.empty();
  ListedImages all = images_of(
      std::move(train), numbers, has_test ? "training images" : "images", options, root, log);
  if (has_test) {
    out.train = std::move(all);
  } else {
    std::tie(out.train, out.test) = split_classes(all, out.classes, options.test_share);
    ABT_CHECK(
        out.test.size() > 0, DamagedData,
        "{}: expected a class with at least two images, one of them for the test set", root);
  }
  std::vector<std::string>& facts = out.account.facts;
  facts.insert(facts.begin(), parts_fact(parts, out, options.test_share));
  if (!parts.unread.empty()) {
    facts.push_back(formatted("{}: not read: {}", root, first_of(parts.unread, kShown)));
  }
  return out;
}

}  // namespace abtrain::data
