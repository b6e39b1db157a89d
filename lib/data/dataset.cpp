#include "data/dataset.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <algorithm>
#include <numeric>

#include <filesystem>

#include "base/conflict.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file_mapping.h"
#include "data/arrays/array_set.h"
#include "data/images/float_images.h"
#include "data/images/image_folder.h"
#include "data/images/image_parts.h"
#include "data/known_sets.h"
#include "data/order.h"
#include "data/text/text_set.h"
#include "data/text/tokens.h"

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
    roots.emplace_back(*root);
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

// The path of the file, plain or gzipped (.dz: by dictzip); "" if it does not exist.
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

// Returns the reason why the folder does not hold the data set, or "" if it does.
std::string what_lacks(const KnownSet& set, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return fs::exists(folder, ignored) ? "is a file; expected a folder" : "no such folder";
  }
  if (set.has_files()) {
    return has_training_part(folder.string()) ? "" : "lacks train";
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

std::string folder_of(const KnownSet& set, const std::optional<std::string>& root) {
  std::string looked_in;
  for (const fs::path& folder : places(set, root)) {
    const std::string lack = what_lacks(set, folder);
    if (lack.empty()) {
      return folder.string();
    }
    looked_in += formatted("\n  {}: {}", folder.string(), lack);
  }
  // Image folders without a folder `train` are found only under an explicit root, because many
  // folders contain folders.
  if (set.has_files() && root && holds_folders(*root)) {
    return *root;
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
  return *options.root;
}

DatasetShape shape_of(const Dataset& set) {
  return {set, set.train.size(), set.test.size(), set.account};
}

// Applies data.subset and data.pool to a data set's shape; image-folder has neither option.
DatasetShape cut_shape(DatasetShape shape, const DataOptions& options) {
  if (options.subset > shape.train) {
    throw ConflictError(
        {{"data.subset", "data.name"},
         formatted(
             "expected 0 .. {}, all training {} of {}, got {}", shape.train, examples_of(options),
             options.name, options.subset)});
  }
  const std::int64_t side = options.pool;
  if (side > 0 && (shape.height % side != 0 || shape.width % side != 0)) {
    throw ConflictError(
        {{"data.pool", "data.name"},
         formatted(
             "expected a divisor of the {} x {} pixels of {}, got {}", shape.height, shape.width,
             options.name, side)});
  }
  if (options.subset > 0) {
    shape.train = options.subset;
  }
  if (side > 0) {
    shape.height = shape.width = side;
    if (!shape.sizes.empty()) {
      shape.sizes[shape.sizes.size() - 2] = shape.sizes.back() = side;
    }
  }
  return shape;
}

// The labels of the examples: N, int64. Undefined if examples do not have exactly one label each.
at::Tensor labels_of(const Examples& examples) {
  return std::visit(
      [](const auto& source) -> at::Tensor {
        if constexpr (requires { source.labels; }) {
          return source.labels;
        } else if constexpr (requires { source.answers; }) {
          return source.answers.dim() == 1
                     ? at::index_select(source.answers.to(at::kLong), 0, source.places)
                     : at::Tensor();
        } else {
          return {};
        }
      },
      static_cast<const Examples::variant&>(examples));
}

// Completes the data set's account, for a run that trains on the first `taken` examples only.
void account_for(Dataset& set, const KnownSet& known, Task task, std::int64_t taken) {
  set.account.task = task_of(set, set.class_names);
  const at::Tensor train = set.regression ? at::Tensor() : labels_of(set.train);
  if (train.defined()) {
    account_for_classes(
        train.slice(0, 0, taken), labels_of(set.test), set.classes, set.class_names, set.found_in,
        !known.is_arrays || !set.class_names.empty() || task == Task::Classes, set.account);
  }
}

Dataset open_own_arrays(const DataOptions& options, bool reads_values) {
  ABT_CHECK(
      options.root, Config,
      "data.root: expected the folder of the arrays (abtrain.save_arrays of the Python module "
      "writes one), got auto");
  return open_arrays(options, *options.root, reads_values);
}

// The values given for `key`, else the data set's own, else `neutral`.
std::vector<float> a_channel(
    const char* key, std::int64_t channels, const std::vector<double>& given,
    const std::vector<float>& own, float neutral) {
  ABT_CHECK(
      given.empty() || std::ssize(given) == channels, Config, "{}: {}", key,
      channels_wanted(channels, given.size()));
  if (given.empty()) {
    return own.empty() ? std::vector<float>(static_cast<std::size_t>(channels), neutral) : own;
  }
  return {given.begin(), given.end()};
}

}  // namespace

std::vector<std::int64_t> by_class(const Examples& examples, std::uint64_t seed) {
  const std::int64_t size = examples.size();
  if (std::holds_alternative<TextWindows>(examples)) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const at::Tensor labels = std::visit(
      [](const auto& source) -> at::Tensor {
        if constexpr (requires { source.targets; }) {
          return source.targets.defined() ? at::Tensor() : source.labels;
        } else if constexpr (requires { source.labels; }) {
          return source.labels;
        } else if constexpr (requires { source.answers; }) {
          return source.answers.dim() == 1 && !source.answers.is_floating_point()
                     ? source.answers.to(at::kLong).index_select(0, source.places)
                     : at::Tensor();
        } else {
          return {};
        }
      },
      static_cast<const Examples::variant&>(examples));
  ABT_CHECK(
      labels.defined(), Config,
      "data.shards: by-class needs one label for each example, or a text; expected even");
  std::vector<std::int64_t> all =
      permutation(size, Random(seed, RandomPurpose::Shuffle, 0, 0x5eed));
  const auto* const label = labels.const_data_ptr<std::int64_t>();
  std::ranges::stable_sort(all, {}, [&](std::int64_t i) { return label[i]; });
  return all;
}

std::int64_t Examples::size() const {
  const at::Tensor each = std::visit(
      [](const auto& source) -> at::Tensor {
        if constexpr (requires { source.labels; }) {
          return source.labels;
        } else {
          return source.places;
        }
      },
      static_cast<const variant&>(*this));
  return each.defined() ? each.size(0) : 0;
}

at::Tensor Examples::counted_labels() const {
  const auto* rows = std::get_if<TokenRows>(this);
  return rows != nullptr && rows->counted.defined() ? rows->counted.index_select(0, rows->places)
                                                    : at::Tensor();
}

Examples as_floats(const Examples& examples, std::int64_t side) {
  if (const auto* values = std::get_if<FloatImages>(&examples)) {
    return side > 0 ? pooled(*values, side) : *values;
  }
  const auto& images = std::get<ByteImages>(examples);
  return FloatImages{
      pooled(images.pixels, side), images.labels, images.targets,
      at::arange(images.pixels.size(0), at::kLong)};
}

DatasetShape dataset_shape(const DataOptions& options) {
  const KnownSet set = find_set(options.name);
  if (set.read != nullptr) {
    DatasetShape shape = cut_shape(set.shape, options);
    shape.account.task = task_of(shape, set.class_names);
    return shape;
  }
  Dataset read = set.is_arrays ? open_own_arrays(options, /*reads_values=*/false)
                 : set.is_text ? open_text(options, text_path(set, options), nullptr)
                               : open_image_folder(options, folder_of(set, options.root), nullptr);
  DatasetShape shape = set.is_arrays ? cut_shape(shape_of(read), options) : shape_of(read);
  account_for(read, set, options.task, shape.train);
  check_mapped_files();
  shape.account = std::move(read.account);
  return shape;
}

DatasetPlace find_dataset(const std::string& name, const std::optional<std::string>& root) {
  const KnownSet set = find_set(name);
  DatasetPlace place{"", set.how_to_get, set.layout};
  for (const fs::path& folder : places(set, root)) {
    if (!set.train_files.empty() && what_lacks(set, folder).empty()) {
      place.found_in = folder.string();
      break;
    }
  }
  return place;
}

namespace {

// Checks the tokens of both parts; only once if both belong to one text.
void check_tokens(const Dataset& set) {
  const auto& train = std::get<TextWindows>(set.train).text;
  const auto& test = std::get<TextWindows>(set.test).text;
  train->check();
  if (test != train) {
    test->check();
  }
}

Dataset read_dataset(const DataOptions& options, Log* log, bool reads_values) {
  const KnownSet set = find_set(options.name);
  if (set.is_text) {
    Dataset text = open_text(options, text_path(set, options), log);
    check_tokens(text);
    return text;
  }
  Dataset out = set.is_arrays ? open_own_arrays(options, reads_values) : Dataset();
  const DatasetShape shape = cut_shape(set.is_arrays ? shape_of(out) : set.shape, options);
  std::vector<float> mean = a_channel("data.mean", shape.channels, options.mean, set.mean, 0);
  std::vector<float> std = a_channel("data.std", shape.channels, options.std, set.std, 1);
  if (set.has_files()) {
    out = open_image_folder(options, folder_of(set, options.root), log);
  } else if (!set.is_arrays) {
    const std::string folder = folder_of(set, options.root);
    out.name = set.name;
    out.found_in = folder;
    out.class_names = set.class_names;
    out.train = read_part(set, folder, set.train_files, set.shape.train);
    out.test = read_part(set, folder, set.test_files, set.shape.test);
  }
  out.mean = std::move(mean);
  out.std = std::move(std);
  if (set.has_files()) {
    return out;
  }
  static_cast<ExampleShape&>(out) = shape;
  if (shape.train < out.train.size()) {
    out.train = chosen(out.train, at::arange(shape.train, at::kLong));
  }
  if (options.pool > 0 || options.standardize) {
    out.train = as_floats(out.train, options.pool);
    out.test = as_floats(out.test, options.pool);
  }
  if (const auto* values = std::get_if<FloatImages>(&out.train)) {
    out.norm = options.standardize ? standard_norm(*values) : channel_norm(out);
  }
  return out;
}

}  // namespace

Dataset load_dataset(const DataOptions& options, Log* log, bool reads_values) {
  Dataset set = read_dataset(options, log, reads_values);
  account_for(set, find_set(options.name), options.task, set.train.size());
  check_mapped_files();
  return set;
}

}  // namespace abtrain::data
