#include "train/predict.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/scalars.h"
#include "data/arrays/array_file.h"
#include "data/arrays/array_set.h"
#include "data/augment.h"
#include "data/images/float_images.h"
#include "data/images/image_files.h"
#include "device/devices.h"
#include "device/memory.h"
#include "train/evaluation.h"
#include "train/setup.h"
#include "weights/export.h"
#include "weights/model_file.h"

namespace abtrain::train {

namespace {

namespace fs = std::filesystem;

// All images in a folder and its subfolders, sorted; hidden ones are skipped.
std::vector<fs::path> images_below(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  std::set<fs::path> seen = {real_path(folder)};
  fs::recursive_directory_iterator i(
      folder, fs::directory_options::follow_directory_symlink, error);
  for (; !error && i != end(i); i.increment(error)) {
    const std::string name = i->path().filename().string();
    std::error_code ignored;
    const bool is_folder = i->is_directory(ignored);
    // Links may form cycles.
    if (is_folder && (name.starts_with('.') || !seen.insert(real_path(i->path())).second)) {
      i.disable_recursion_pending();
    }
    if (!is_folder && !name.starts_with('.') && data::is_image_name(name)) {
      found.push_back(i->path());
    }
  }
  ABT_CHECK(!error, Io, "{}: cannot be listed: {}", folder, error.message());
  ABT_CHECK(!found.empty(), MissingInput, "{}: expected .jpg, .jpeg, .png or .webp files, found none", folder);
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> files_of(const std::vector<std::string>& named) {
  std::vector<std::string> files;
  for (const std::string& name : named) {
    std::error_code ignored;
    if (fs::is_directory(name, ignored)) {
      for (const fs::path& path : images_below(name)) {
        files.push_back(path.string());
      }
      continue;
    }
    ABT_CHECK(fs::exists(name, ignored), MissingInput, "there is no file '{}'", name);
    ABT_CHECK(
        !name.ends_with(".npy") && !name.ends_with(".safetensors"), Usage,
        "{}: expected JPEG, PNG or WebP files, because the run does not train on arrays", name);
    files.push_back(name);
  }
  for (const std::string& file : files) {
    ABT_CHECK(
        file.find('\n') == std::string::npos, Usage, "'{}': expected a name of one line", file);
  }
  return files;
}

// The files as examples; each label is the file's index in the list.
data::ListedImages listed(const std::vector<std::string>& files, Log& log) {
  std::vector<data::ListedFolder> folders;
  for (const std::string& file : files) {
    const fs::path path(file);
    folders.push_back(
        {.path = path.has_parent_path() ? path.parent_path().string() : ".",
         .images = path.filename().string() + "\n",
         .image_count = 1});
  }
  const at::Tensor places = at::arange(std::ssize(files), at::kLong);
  return {
      std::make_shared<data::ImageFiles>("images", "", std::move(folders), /*max_damaged=*/1, &log),
      places, places};
}

// Reads the metadata entry `key`, which has one number per channel: "0.5,0.25".
std::vector<float> channels_of(
    const weights::About& about, const std::string& key, const std::string& path) {
  std::vector<float> values;
  const auto entry = about.find(key);
  for (const std::string& text :
       split_text(entry == about.end() ? std::string() : entry->second, ',')) {
    double value = 0;
    std::string ignored;
    ABT_CHECK(
        parse_number(text, value, ignored), DamagedData,
        "{}: expected the {} of each channel in its metadata, as a run writes it, got '{}'", path,
        key, text);
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::vector<std::string> class_names_in(
    const weights::About& about, std::int64_t classes, const std::string& path) {
  const auto json = weights::classes_in(about);
  std::vector<std::string> names;
  if (!json.is_array()) {
    return names;  // only the number of classes is known
  }
  ABT_CHECK(
      read_json(json, names), DamagedData, "{}: expected the names of {} classes in its metadata",
      path, classes);
  ABT_CHECK(
      std::ssize(names) == classes, DamagedData,
      "{}: expected the names of {} classes in its metadata, got {}", path, classes, names.size());
  return names;
}

// Batches of files in the form that the run's network takes.
class FileInputs {
 public:
  FileInputs(
      const config::RunOptions& options, const data::ExampleShape& shape, const std::string& model,
      std::vector<std::string> files, Log& log)
      : options_(options.data), images_(listed(files, log)) {
    options_.decode_threads = decode_threads(options_, 1);
    options_.augment = data::AugmentName::None;
    own_.channels = shape.channels;
    if (options_.standardize) {
      data::Dataset set = data::load_dataset(options_, &log);
      own_.mean = set.mean;
      own_.std = set.std;
      own_.norm = set.norm;
    } else {
      const weights::About about = weights::about_of(model);
      own_.mean = channels_of(about, "mean", model);
      own_.std = channels_of(about, "std", model);
    }
    ABT_CHECK(
        std::ssize(own_.mean) == shape.channels && own_.std.size() == own_.mean.size(), DamagedData,
        "{}: expected a mean and a standard deviation for each of {} channels in its metadata",
        model, shape.channels);
    own_.height = shape.height;
    own_.width = shape.width;
    if (options_.pool > 0 && !options_.standardize) {
      own_.norm = data::channel_norm(own_);
    }
    own_.test = images_;
    if (data::has_files(options_)) {
      augment_.emplace(options_, own_, 0);
      return;
    }
    ABT_CHECK(
        shape.height == shape.width && (shape.channels == 1 || shape.channels == 3), Config,
        "the network takes {} x {} x {} numbers; expected one that takes square images of 1 or 3 "
        "channels",
        shape.channels, shape.height, shape.width);
    // Decodes to bytes, at the size that the data set has on disk.
    data::DataOptions decoded = options_;
    decoded.pool = decoded.subset = 0;
    decoded.image_size = decoded.resize =
        options_.pool > 0 ? data::dataset_shape(decoded).height : shape.height;
    data::Dataset bytes;
    bytes.mean = {0, 0, 0};
    bytes.std.assign(3, 1.0F / 255.0F);
    bytes.test = images_;
    decoder_.emplace(decoded, bytes, 0);
    own_.test = {};
    augment_.emplace(options_, own_, 0);
  }

  // Makes a batch of the files begin .. end - 1 without the damaged ones; labels are indices in the
  // list.
  data::Batch batch(std::int64_t begin, std::int64_t end) const {
    if (!decoder_) {
      return augment_->evaluation(images_, begin, end);
    }
    const data::Batch decoded = decoder_->evaluation(images_, begin, end);
    at::Tensor pixels = decoded.inputs.round().to(at::kInt);
    if (own_.channels == 1) {  // as Pillow's convert("L")
      const auto of = [&](std::int64_t channel, std::int64_t share) {
        return pixels.narrow(1, channel, 1) * share;
      };
      pixels = (of(0, 19595) + of(1, 38470) + of(2, 7471) + 0x8000).bitwise_right_shift(16);
    }
    pixels = pixels.to(at::kByte).contiguous();
    const std::int64_t count = pixels.size(0);
    if (own_.norm.mean.defined()) {
      return augment_->evaluation(
          data::FloatImages{
              data::pooled(pixels, options_.pool),
              decoded.labels,
              {},
              at::arange(count, at::kLong)},
          0, count);
    }
    return augment_->evaluation(data::ByteImages{pixels, decoded.labels}, 0, count);
  }
  std::int64_t damaged() const {
    return images_.files->damaged();
  }

 private:
  data::DataOptions options_;
  data::ListedImages images_;
  data::Dataset own_;  // the facts about the run's data set that evaluations use
  std::optional<data::Augment> decoder_, augment_;
};

// Applies a run's model, batch by batch.
class Predictor {
 public:
  Predictor(const config::RunOptions& configured, const PredictOptions& options)
      : path(options.model.path()),
        shape(weights::shape_of_run(configured, path)),
        device_(device::pick_device(configured.device)),
        model_(model_at_work(configured, shape, path, device_)),
        batch_size_(configured.evaluate.batch_size),
        top_(std::min(options.top, shape.classes)) {
    predictions.regression = shape.regression;
    predictions.class_names = class_names_in(weights::about_of(path), shape.classes, path);
  }

  // `batch(begin, end)`: makes a batch of examples begin .. end - 1 of `count`, with their indices
  // as labels.
  void add(std::int64_t count, const auto& batch, const auto& name_of) {
    for_batches(0, count, batch_size_, std::launch::async, batch, [&](const data::Batch& now) {
      add_batch(now, name_of);
    });
  }

  const std::string path;
  const data::ExampleShape shape;
  Predictions predictions;

 private:
  void add_batch(const data::Batch& batch, const auto& name_of) {
    const at::Tensor outputs = model_->forward(batch.inputs.to(device_), false).to(at::kDouble);
    at::Tensor classes, numbers;
    if (shape.regression) {
      numbers = outputs.view({batch.labels.size(0), shape.classes});
      classes = at::arange(shape.classes, at::kLong).expand_as(numbers).contiguous();
    } else {
      const at::Tensor ranked = ranked_classes(outputs).narrow(1, 0, top_).contiguous();
      numbers = at::softmax(outputs, 1).gather(1, ranked);
      classes = ranked.cpu();
    }
    numbers = numbers.cpu().contiguous();
    ABT_CHECK(
        at::isfinite(numbers).all().item<bool>(), Diverged,
        "{}: its outputs are not finite; its training may have diverged", path);
    const std::int64_t width = numbers.size(1);
    const auto* place = batch.labels.const_data_ptr<std::int64_t>();
    const auto* which = classes.const_data_ptr<std::int64_t>();
    const auto* number = numbers.const_data_ptr<double>();
    for (std::int64_t i = 0; i < batch.labels.size(0); ++i, which += width, number += width) {
      predictions.of_files.push_back(
          {name_of(place[i]), {which, which + width}, {number, number + width}});
    }
  }

  at::Device device_;
  std::unique_ptr<nn::Model> model_;
  std::int64_t batch_size_, top_;
};

void predict_arrays(
    const config::RunOptions& configured, const PredictOptions& options, Predictor& predictor,
    Log& log) {
  // Only standardizing depends on the values in the training arrays.
  const data::Dataset set =
      data::load_dataset(configured.data, &log, /*reads_values=*/configured.data.standardize);
  ABT_CHECK(
      set.context == 0 || !set.token_labels, Config,
      "{}: expected a run that predicts a label per example, but this one predicts one per token",
      options.model.shown());
  const data::Augment augment(configured.data, set, 0);
  for (const std::string& file : options.files) {
    const data::Examples examples = data::further_examples(
        data::map_array(file, "x", "a tensor x"), file, set, configured.data);
    predictor.add(
        examples.size(),
        [&](std::int64_t begin, std::int64_t end) {
          return augment.evaluation(examples, begin, end);
        },
        [&](std::int64_t place) { return formatted("{}[{}]", file, place); });
  }
}

}  // namespace

Predictions predict(const config::RunOptions& configured, const PredictOptions& options, Log& log) {
  const at::NoGradGuard no_grad;
  device::keep_freed_memory();
  ABT_CHECK(
      !data::is_text(configured.data), Config,
      "{}: expected a run that trains on images or arrays, but its data.name is {}; `abtrain "
      "generate` continues a text",
      options.model.shown(), configured.data.name);
  const bool arrays = configured.data.name == "arrays";
  const std::vector<std::string> files =
      arrays ? std::vector<std::string>() : files_of(options.files);
  Predictor predictor(configured, options);
  if (arrays) {
    predict_arrays(configured, options, predictor, log);
    return std::move(predictor.predictions);
  }
  const FileInputs inputs(configured, predictor.shape, predictor.path, files, log);
  predictor.add(
      std::ssize(files),
      [&](std::int64_t begin, std::int64_t end) { return inputs.batch(begin, end); },
      [&](std::int64_t place) { return files[static_cast<std::size_t>(place)]; });
  predictor.predictions.damaged = inputs.damaged();
  return std::move(predictor.predictions);
}

}  // namespace abtrain::train
