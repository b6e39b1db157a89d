#include "data/dataset.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "data/float_images.h"
#include "data/formats.h"
#include "data/image_folder.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

// Everything that distinguishes one data set from another. To add a data set,
// add a row to `table()`.
struct Set {
  std::string name;
  DatasetShape shape;
  std::vector<float> mean, std;
  bool flips;
  Files train_files, test_files;  // plain names; NAME.gz works, too
  Files folders;                  // under a root, besides the root itself
  Files system_places;
  std::string how_to_get;
  std::string layout;  // how the files are laid out, one line each
  // Reads `count` images in all from the paths of train_files or test_files.
  // Null: the data set is a tree of JPEG files, and train_files and test_files
  // are its parts.
  Images (*read)(const Set& set, const Files& paths, std::int64_t count);
};

Images read_idx_set(const Set& set, const Files& paths, std::int64_t count) {
  return read_idx(
      paths[0],
      paths[1],
      set.shape.classes,
      {count, set.shape.height, set.shape.width});
}

Images read_cifar_set(const Set& set, const Files& paths, std::int64_t count) {
  const auto files = static_cast<std::int64_t>(paths.size());
  return read_cifar(paths, count / files, set.shape.classes);
}

// A coarse label precedes the fine one.
Images
read_cifar100_set(const Set& set, const Files& paths, std::int64_t count) {
  return read_cifar(paths, count, set.shape.classes, /*label_bytes=*/2);
}

std::vector<Set> table() {
  return {
      {.name = "fashion-mnist",
       .shape = {1, 28, 28, 10, 60'000, 10'000},
       .mean = {0.2860f},
       .std = {0.3530f},
       .flips = true,
       .train_files = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
       .test_files = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
       .folders = {"fashion-mnist", "FashionMNIST/raw"},
       .system_places = {"/usr/share/datasets/fashion-mnist"},
       .how_to_get =
           "apt install dataset-fashion-mnist, or the four files from "
           "https://github.com/zalandoresearch/fashion-mnist",
       .layout = "ROOT/train-images-idx3-ubyte\n"
                 "ROOT/train-labels-idx1-ubyte\n"
                 "ROOT/t10k-images-idx3-ubyte\n"
                 "ROOT/t10k-labels-idx1-ubyte   (each may end in .gz)",
       .read = read_idx_set},
      {.name = "cifar10",
       .shape = {3, 32, 32, 10, 50'000, 10'000},
       .mean = {0.4914f, 0.4822f, 0.4465f},
       .std = {0.2023f, 0.1994f, 0.2010f},
       .flips = true,
       .train_files =
           {"data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin"},
       .test_files = {"test_batch.bin"},
       .folders = {"cifar-10-batches-bin"},
       .system_places = {},
       .how_to_get = "the binary version of "
                     "https://www.cs.toronto.edu/~kriz/cifar.html, unpacked",
       .layout = "ROOT/cifar-10-batches-bin/data_batch_1.bin ... "
                 "data_batch_5.bin\n"
                 "ROOT/cifar-10-batches-bin/test_batch.bin",
       .read = read_cifar_set},
      {.name = "cifar100",
       .shape = {3, 32, 32, 100, 50'000, 10'000},
       .mean = {0.5071f, 0.4865f, 0.4409f},
       .std = {0.2673f, 0.2564f, 0.2762f},
       .flips = true,
       .train_files = {"train.bin"},
       .test_files = {"test.bin"},
       .folders = {"cifar-100-binary"},
       .system_places = {},
       .how_to_get = "the binary version of CIFAR-100 from "
                     "https://www.cs.toronto.edu/~kriz/cifar.html, unpacked",
       .layout = "ROOT/cifar-100-binary/train.bin\n"
                 "ROOT/cifar-100-binary/test.bin",
       .read = read_cifar100_set},
      // The mean and deviation are ImageNet's.
      {.name = "image-folder",
       .shape = {3, 0, 0, 0, 0, 0},
       .mean = {0.485f, 0.456f, 0.406f},
       .std = {0.229f, 0.224f, 0.225f},
       .flips = true,
       .train_files = {"train"},
       .test_files = {"val"},
       .folders = {"image-folder"},
       .system_places = {},
       .how_to_get = "JPEG files of your own, or ImageNet's from "
                     "https://image-net.org, with its validation images moved "
                     "into a folder for each class",
       .layout = "ROOT/train/CLASS/NAME.jpg   (or .jpeg, in any case)\n"
                 "ROOT/val/CLASS/NAME.jpg     (only classes that train has)",
       .read = nullptr},
  };
}

Set find_set(const std::string& name) {
  for (Set& set : table()) {
    if (set.name == name) {
      return std::move(set);
    }
  }
  const std::vector<std::string> names = dataset_names();
  const std::string near = nearest(name, names);
  throw Error(
      ErrorKind::Config,
      str("data.name: expected one of ",
          join(names, ", "),
          "; got '",
          name,
          "'",
          near.empty() ? "" : str(" (did you mean '", near, "'?)")));
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Folders that may hold the data set, best first.
std::vector<fs::path> places(const Set& set, const std::string& root) {
  const std::string home = environment("HOME");
  std::vector<fs::path> roots;
  if (root == "auto") {
    if (const std::string data = environment("ABTRAIN_DATA"); !data.empty()) {
      roots.emplace_back(data);
    }
    roots.emplace_back("data");
    if (!home.empty()) {
      roots.push_back(fs::path(home) / ".cache/abtrain/data");
    }
  } else if (root.starts_with("~/") && !home.empty()) {
    roots.push_back(fs::path(home) / root.substr(2));
  } else {
    roots.emplace_back(root);
  }
  std::vector<fs::path> found;
  for (const fs::path& each : roots) {
    found.push_back(each);
    for (const std::string& folder : set.folders) {
      found.push_back(each / folder);
    }
  }
  if (root == "auto") {
    found.insert(
        found.end(), set.system_places.begin(), set.system_places.end());
  }
  return found;
}

// The path of the file, plain or gzipped; "" if it does not exist.
std::string file_in(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = folder / (name + ending);
    if (fs::exists(path, ignored)) {
      return path.string();
    }
  }
  return "";
}

// Why the folder does not hold the data set; "" if it does.
std::string what_lacks(const Set& set, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return "no such folder";
  }
  Files lacking;
  for (const Files* files : {&set.train_files, &set.test_files}) {
    for (const std::string& name : *files) {
      if (file_in(folder, name).empty()) {
        lacking.push_back(name);
      }
    }
  }
  return lacking.empty() ? "" : "lacks " + join(lacking, ", ");
}

Images read_part(
    const Set& set,
    const fs::path& folder,
    const Files& names,
    std::int64_t count) {
  Files paths;
  for (const std::string& name : names) {
    paths.push_back(file_in(folder, name));
  }
  return set.read(set, paths, count);
}

// The folder that holds the data set.
std::string folder_of(const Set& set, const std::string& root) {
  std::string looked_in;
  for (const fs::path& folder : places(set, root)) {
    const std::string lack = what_lacks(set, folder);
    if (lack.empty()) {
      return folder.string();
    }
    looked_in += str("\n  ", folder.string(), ": ", lack);
  }
  throw Error(
      ErrorKind::MissingInput,
      str("data set ",
          set.name,
          " was not found (data.root: ",
          root,
          "). Looked in:",
          looked_in,
          "\nTo get it: ",
          set.how_to_get,
          ".\nExpected layout:\n  ",
          join(split_text(set.layout, '\n'), "\n  "),
          "\nThen set data.root or ABTRAIN_DATA to its folder."));
}

// The data set's shape as cut and pooled by the options (not image-folder).
DatasetShape shape_of(const Set& set, const DataOptions& options) {
  DatasetShape shape = set.shape;
  ABT_CHECK(
      options.subset >= 0 && options.subset <= shape.train,
      Config,
      "data.subset: expected 0 .. ",
      shape.train,
      ", all training images of ",
      set.name,
      ", got ",
      options.subset);
  const std::int64_t side = options.pool;
  ABT_CHECK(
      side == 0 ||
          (side > 0 && shape.height % side == 0 && shape.width % side == 0),
      Config,
      "data.pool: expected a divisor of the ",
      shape.height,
      " x ",
      shape.width,
      " pixels of ",
      set.name,
      ", got ",
      side);
  if (options.subset > 0) {
    shape.train = options.subset;
  }
  if (side > 0) {
    shape.height = shape.width = side;
  }
  return shape;
}

void keep_first(Images& images, std::int64_t count) {
  if (count < images.size()) {
    images.pixels = images.pixels.narrow(0, 0, count).clone();
    images.labels = images.labels.narrow(0, 0, count).clone();
  }
}

void make_values(Images& images, std::int64_t side) {
  images.values = pooled(images.pixels, side);
  images.pixels.reset();
}

// The data set's own values, or those given for `key`.
std::vector<float> a_channel(
    const char* key,
    const std::vector<float>& own,
    const std::vector<double>& given) {
  ABT_CHECK(
      given.empty() || given.size() == own.size(),
      Config,
      key,
      ": expected ",
      own.size(),
      own.size() == 1 ? " value" : " values",
      ", one per channel, got ",
      given.size());
  return given.empty() ? own : std::vector<float>(given.begin(), given.end());
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Set& set : table()) {
    names.push_back(set.name);
  }
  return names;
}

std::int64_t dataset_channels(const std::string& name) {
  for (const Set& set : table()) {
    if (set.name == name) {
      return set.shape.channels;
    }
  }
  return 0;
}

DatasetShape dataset_shape(const DataOptions& options) {
  const Set set = find_set(options.name);
  if (set.read != nullptr) {
    return shape_of(set, options);
  }
  const Dataset found =
      open_image_folder(options, folder_of(set, options.root), nullptr);
  return {
      found.channels,
      found.height,
      found.width,
      found.classes,
      found.train.size(),
      found.test.size()};
}

DatasetPlace find_dataset(const std::string& name, const std::string& root) {
  for (const Set& set : table()) {
    if (set.name != name) {
      continue;
    }
    for (const fs::path& folder : places(set, root)) {
      if (what_lacks(set, folder).empty()) {
        return {name, folder.string(), set.how_to_get, set.layout};
      }
    }
    return {name, "", set.how_to_get, set.layout};
  }
  return {name, "", "", ""};
}

Dataset load_dataset(const DataOptions& options, Log* log) {
  const Set set = find_set(options.name);
  std::vector<float> mean = a_channel("data.mean", set.mean, options.mean);
  std::vector<float> std = a_channel("data.std", set.std, options.std);
  const DatasetShape shape =
      set.read == nullptr ? set.shape : shape_of(set, options);
  const std::string folder = folder_of(set, options.root);
  Dataset out;
  if (set.read == nullptr) {
    out = open_image_folder(options, folder, log);
  } else {
    out.name = set.name;
    out.found_in = folder;
    out.channels = shape.channels;
    out.height = shape.height;
    out.width = shape.width;
    out.classes = shape.classes;
    out.train = read_part(set, folder, set.train_files, set.shape.train);
    out.test = read_part(set, folder, set.test_files, set.shape.test);
  }
  out.mean = std::move(mean);
  out.std = std::move(std);
  out.flips = set.flips;
  if (set.read != nullptr) {
    keep_first(out.train, shape.train);
    if (options.pool > 0 || options.standardise) {
      make_values(out.train, options.pool);
      make_values(out.test, options.pool);
      out.norm = options.standardise ? standard_norm(out.train.values)
                                     : channel_norm(out);
    }
  }
  return out;
}

}  // namespace abtrain::data
