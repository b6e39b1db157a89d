// A data set: images with their classes, as bytes in memory (or floats, if pooled or standardized)
// or as image files that are decoded on demand; a text (data/text/text_set.h); or a user's own
// arrays (data/arrays/array_set.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/account.h"
#include "data/data_options.h"
#include "data/example_shape.h"

namespace abtrain {
class Log;
}

namespace abtrain::data {

class ImageFiles;
class Tokens;

// The tensors of a user's arrays may lie in a mapped file, so nothing may write to them.
struct ByteImages {
  at::Tensor pixels = {};   // N x C x H x W, uint8, contiguous, CPU
  at::Tensor labels = {};   // N, int64, CPU; all 0 if there are targets
  at::Tensor targets = {};  // N x K, fp32, for a regression; else undefined
};
struct FloatImages {
  at::Tensor values = {};   // M x C x H x W, floating point: pixel / 255, or arrays as they are
  at::Tensor labels = {};   // N, int64, CPU; all 0 if there are targets
  at::Tensor targets = {};  // N x K, fp32, for a regression; else undefined
  at::Tensor places = {};   // N, int64: the row of `values` for each example
};
// Images that are decoded for each batch.
struct ListedImages {
  std::shared_ptr<ImageFiles> files = {};
  at::Tensor places = {};  // N, int64: the index into `files` for each example
  at::Tensor labels = {};  // N, int64, CPU
};
// Windows of a text (data/text/text_set.h).
struct TextWindows {
  std::shared_ptr<const Tokens> text = {};
  at::Tensor places = {};  // N, int64: the first token of each window
};
// Rows of tokens, as integers of any type. `answers` holds labels, M x T integers or, with one
// label per row, M; or the targets of a regression, M or M x K floating-point numbers.
struct TokenRows {
  at::Tensor tokens = {};  // M x T
  at::Tensor answers = {};
  at::Tensor places = {};  // N, int64: the row of both tensors for each example
  // M, int64: the number of labels in each row that are not kIgnoredLabel; undefined if all count.
  at::Tensor counted = {};
};

// A part of a data set: training, validation or test examples.
//   if (const auto* bytes = std::get_if<ByteImages>(&examples)) ...
struct Examples : std::variant<ByteImages, FloatImages, ListedImages, TextWindows, TokenRows> {
  using variant::variant;
  std::int64_t size() const;
  // For each example, the number of labels that are not kIgnoredLabel: N, int64; undefined if all
  // labels count.
  at::Tensor counted_labels() const;
};

// The mean and standard deviation by which each pixel of `values` is normalized: C x H x W each,
// fp32.
struct Norm {
  at::Tensor mean = {}, std = {};
};

struct Dataset : ExampleShape {
  std::string name;
  std::string found_in;     // folder of its files, or a text's file
  std::vector<float> mean;  // per channel, of pixel / 255
  std::vector<float> std;
  Norm norm = {};  // in place of mean and std for FloatImages
  Examples train;
  Examples test;
  Examples validation = {};                   // empty if the data set has none of its own
  bool of_bytes = false;                      // arrays: x is uint8
  std::vector<std::int64_t> file_sizes = {};  // arrays: an example's sizes before data.pool
  std::vector<std::string> class_names = {};  // empty if unknown
  std::int64_t decode_threads = 1;            // used if data.decode_threads is auto
  Account account = {};
};

// The shape of the data set that `options` name, after data.subset and data.pool (for `plan`).
// Opens no files of the known image sets, lists the files of image-folder, and maps the files of a
// text or of arrays. Throws as load_dataset() does.
struct DatasetShape : ExampleShape {
  std::int64_t train = 0, test = 0;  // examples
  Account account = {};
};
DatasetShape dataset_shape(const DataOptions& options);
std::vector<std::string> dataset_names();
// Whether the data set consists of image files that are decoded for each batch (image-folder).
bool has_files(const DataOptions& options);
bool is_text(const DataOptions& options);
bool is_arrays(const DataOptions& options);
// The vocabulary size of a text: its tokens are 0 .. vocabulary_of() - 1.
std::int64_t vocabulary_of(const DataOptions& options);
// The noun for the examples in messages: "images", "windows" of a text, or "examples".
const char* examples_of(const DataOptions& options);

// Reads a data set. options.root: a folder, or nullopt for the usual places (the environment's
// ABTRAIN_DATA, ./data, ~/.cache/abtrain/data, and for fashion-mnist Debian's
// /usr/share/datasets/fashion-mnist). Throws MissingInput, which names the places searched and
// where to get the data set; DamagedData, which names the file; Config if it cannot be cut to
// data.subset or pooled to data.pool. `log`, which must outlive the data set, gets information and
// a warning for each damaged file. `reads_values`: also checks that all floating-point numbers of
// arrays are finite.
Dataset load_dataset(const DataOptions& options, Log* log = nullptr, bool reads_values = true);

// The folder of the data set `name`, how to get the data set, and the layout of its files, for
// `doctor`. `found_in` is empty if the data set was not found. Throws ConflictError for an unknown
// name.
struct DatasetPlace {
  std::string found_in, how_to_get, layout;
};
DatasetPlace find_dataset(
    const std::string& name, const std::optional<std::string>& root = std::nullopt);

// Converts images to FloatImages; mean-pools them to `side` x `side` if `side` is above 0.
Examples as_floats(const Examples& images, std::int64_t side);
// The indices of the examples, sorted by label and in a seeded order within each label; windows of
// a text in text order. Throws Error(Config) if the examples do not have one label each.
std::vector<std::int64_t> by_class(const Examples& examples, std::uint64_t seed);
// The examples at `indices`, an int64 tensor, in that order.
Examples chosen(const Examples& all, const at::Tensor& indices);
// Removes the last `count` examples of a seeded permutation from the training
// examples and returns them. Throws Error(Config) for a count out of range.
Examples hold_out(Examples& train, std::int64_t count, std::uint64_t seed);
// Returns the validation examples of a run: the data set's own if `count` is 0, else `count`
// training examples, which it removes from `set.train`.
Examples take_validation(Dataset& set, std::int64_t count, std::uint64_t seed);
// The seed for splitting a data set without a test part: the same in every run, so that runs with
// other seeds can be compared.
inline constexpr std::uint64_t kSplitSeed = 0;

}  // namespace abtrain::data
