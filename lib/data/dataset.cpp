#include "data/dataset.h"

#include <filesystem>

#include "base/conflict.h"
#include "base/env.h"
#include "base/error.h"
#include "data/images/float_images.h"
#include "data/images/image_folder.h"
#include "data/known_sets.h"
#include "data/text/text_set.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

// Folders that may hold the data set, best first.
std::vector<fs::path> places(const KnownSet& set, const std::optional<std::string>& root) {
  std::vector<fs::path> roots;
  if (!root) {
    if (const auto data = env("ABTRAIN_DATA")) {
      roots.emplace_back(*data);
    }
    roots.emplace_back("data");
    if (const std::string cache = cache_folder(); !cache.empty()) {
      roots.push_back(fs::path(cache) / "data");
    }
  } else {
    roots.emplace_back(at_home(*root));
  }
  std::vector<fs::path> found;
  for (const fs::path& each : roots) {
    found.push_back(each);
    for (const std::string& folder : set.folders) {
      found.push_back(each / folder);
    }
  }
  if (!root) {
    found.insert(found.end(), set.system_places.begin(), set.system_places.end());
  }
  return found;
}

// The path of the file, plain or gzipped (.dz: by dictzip); "" if it does not
// exist.
std::string file_in(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz", ".dz"}) {
    const fs::path path = folder / (name + ending);
    if (fs::exists(path, ignored)) {
      return path.string();
    }
  }
  return "";
}

// Why the folder does not hold the data set; "" if it does.
std::string what_lacks(const KnownSet& set, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return fs::exists(folder, ignored) ? "is a file; expected a folder" : "no such folder";
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

ByteImages read_part(
    const KnownSet& set, const fs::path& folder, const Files& names, std::int64_t count) {
  Files paths;
  for (const std::string& name : names) {
    paths.push_back(file_in(folder, name));
  }
  return set.read(set, paths, count);
}

// The folder that holds the data set.
std::string folder_of(const KnownSet& set, const std::optional<std::string>& root) {
  std::string looked_in;
  for (const fs::path& folder : places(set, root)) {
    const std::string lack = what_lacks(set, folder);
    if (lack.empty()) {
      return folder.string();
    }
    looked_in += formatted("\n  {}: {}", folder.string(), lack);
  }
  throw Error(
      ErrorKind::MissingInput,
      formatted(
          "data set {} was not found (data.root: {}). Looked in:{}\nTo get it: "
          "{}.\nExpected layout:\n  {}\nThen set data.root or ABTRAIN_DATA to "
          "its folder.",
          set.name, root.value_or("auto"), looked_in, set.how_to_get,
          join(split_text(set.layout, '\n'), "\n  ")));
}

std::string text_path(const KnownSet& set, const DataOptions& options) {
  if (!set.train_files.empty()) {
    return file_in(folder_of(set, options.root), set.train_files.front());
  }
  ABT_CHECK(options.root, Config, "data.root: {} needs the file or folder that holds it", set.name);
  return at_home(*options.root);
}

// The data set's shape as cut and pooled by the options (not image-folder).
DatasetShape shape_of(const KnownSet& set, const DataOptions& options) {
  DatasetShape shape = set.shape;
  if (options.subset < 0 || options.subset > shape.train) {
    throw ConflictError(
        {{"data.subset", "data.name"},
         formatted(
             "expected 0 .. {}, all training images of {}, got {}", shape.train, set.name,
             options.subset)});
  }
  const std::int64_t side = options.pool;
  if (side < 0 || (side > 0 && (shape.height % side != 0 || shape.width % side != 0))) {
    throw ConflictError(
        {{"data.pool", "data.name"},
         formatted(
             "expected a divisor of the {} x {} pixels of {}, got {}", shape.height, shape.width,
             set.name, side)});
  }
  if (options.subset > 0) {
    shape.train = options.subset;
  }
  if (side > 0) {
    shape.height = shape.width = side;
  }
  return shape;
}

void keep_first(ByteImages& images, std::int64_t count) {
  if (count < images.labels.size(0)) {
    images.pixels = images.pixels.narrow(0, 0, count).clone();
    images.labels = images.labels.narrow(0, 0, count).clone();
  }
}

FloatImages as_floats(const ByteImages& images, std::int64_t side) {
  return {pooled(images.pixels, side), images.labels};
}

// The data set's own values, or those given for `key`.
std::vector<float> a_channel(
    const char* key, const std::vector<float>& own, const std::vector<double>& given) {
  ABT_CHECK(
      given.empty() || given.size() == own.size(), Config,
      "{}: expected {}{}, one per channel, got {}", key, own.size(),
      own.size() == 1 ? " value" : " values", given.size());
  return given.empty() ? own : std::vector<float>(given.begin(), given.end());
}

}  // namespace

std::int64_t Examples::size() const {
  const at::Tensor& each = std::visit(
      [](const auto& source) -> const at::Tensor& {
        if constexpr (requires { source.labels; }) {
          return source.labels;
        } else {
          return source.places;
        }
      },
      static_cast<const variant&>(*this));
  return each.defined() ? each.size(0) : 0;
}

DatasetShape dataset_shape(const DataOptions& options) {
  const KnownSet set = find_set(options.name);
  if (set.read != nullptr) {
    return shape_of(set, options);
  }
  const Dataset found = set.is_text
                            ? open_text(options, text_path(set, options), nullptr)
                            : open_image_folder(options, folder_of(set, options.root), nullptr);
  return {found.channels,     found.height,      found.width,  found.classes,
          found.train.size(), found.test.size(), found.context};
}

DatasetPlace find_dataset(const std::string& name, const std::optional<std::string>& root) {
  for (const KnownSet& set : known_sets()) {
    if (set.name != name) {
      continue;
    }
    for (const fs::path& folder : places(set, root)) {
      if (!set.train_files.empty() && what_lacks(set, folder).empty()) {
        return {name, folder.string(), set.how_to_get, set.layout};
      }
    }
    return {name, "", set.how_to_get, set.layout};
  }
  return {name, "", "", ""};
}

Dataset load_dataset(const DataOptions& options, Log* log) {
  const KnownSet set = find_set(options.name);
  if (set.is_text) {
    return open_text(options, text_path(set, options), log);
  }
  std::vector<float> mean = a_channel("data.mean", set.mean, options.mean);
  std::vector<float> std = a_channel("data.std", set.std, options.std);
  const DatasetShape shape = set.has_files() ? set.shape : shape_of(set, options);
  const std::string folder = folder_of(set, options.root);
  Dataset out;
  if (set.has_files()) {
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
  if (!set.has_files()) {
    auto& train = std::get<ByteImages>(out.train);
    keep_first(train, shape.train);
    if (options.pool > 0 || options.standardize) {
      const FloatImages floats = as_floats(train, options.pool);
      out.norm = options.standardize ? standard_norm(floats.values) : channel_norm(out);
      out.train = floats;
      out.test = as_floats(std::get<ByteImages>(out.test), options.pool);
    }
  }
  return out;
}

}  // namespace abtrain::data
