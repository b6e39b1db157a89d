// A data set: images with their classes, in memory as bytes (or floats, if
// pooled or standardized) or as image files that are decoded on demand; a text
// (data/text/text_set.h); or a user's own arrays (data/arrays/array_set.h).
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

// Tensors of arrays may lie in a mapped file: nothing may write to them.
struct ByteImages {
  at::Tensor pixels = {};   // N x C x H x W, uint8, contiguous, CPU
  at::Tensor labels = {};   // N, int64, CPU; 0 if there are targets
  at::Tensor targets = {};  // N x K, fp32: of a regression; else undefined
};
struct FloatImages {
  at::Tensor values = {};   // M x C x H x W, floating point: pixel / 255
  at::Tensor labels = {};   // N, int64, CPU; 0 if there are targets
  at::Tensor targets = {};  // N x K, fp32: of a regression; else undefined
  at::Tensor places = {};   // N, int64: rows of values
};
// Images that are decoded for each batch.
struct ListedImages {
  std::shared_ptr<ImageFiles> files = {};
  at::Tensor places = {};  // N, int64: indices into files
  at::Tensor labels = {};  // N, int64, CPU
};
// Windows of a text, whose labels are the tokens that follow.
struct TextWindows {
  std::shared_ptr<const Tokens> text = {};
  at::Tensor places = {};  // N, int64: the first token of each
};
// Rows of tokens in integers of any type, labels and targets as they lie in
// the file: M x T integers or, if each row has one label, M; or M x K numbers.
struct TokenRows {
  at::Tensor tokens = {};  // M x T
  at::Tensor answers = {};
  at::Tensor places = {};  // N, int64: rows of both
  // M, int64: how many labels of each row count (kIgnoredLabel does not); undefined: all do.
  at::Tensor counted = {};
};

// A part of a data set: training, validation or test examples.
//   if (const auto* bytes = std::get_if<ByteImages>(&examples)) ...
struct Examples : std::variant<ByteImages, FloatImages, ListedImages, TextWindows, TokenRows> {
  using variant::variant;
  std::int64_t size() const;
  // How many labels of each example count: N, int64; undefined if all of all examples do.
  at::Tensor counted_labels() const;
};

// The mean and deviation that each pixel of `values` is normalized by: C x H x
// W each, fp32.
struct Norm {
  at::Tensor mean = {}, std = {};
};

struct Dataset : ExampleShape {
  std::string name;
  std::string found_in;     // folder of its files
  std::vector<float> mean;  // per channel, of pixel / 255
  std::vector<float> std;
  Norm norm = {};  // replaces mean and std if images are values
  Examples train;
  Examples test;
  Examples validation = {};                   // empty if the data set has none of its own
  bool of_bytes = false;                      // of arrays: values from bytes
  std::vector<std::string> class_names = {};  // empty if they are not known
  std::int64_t decode_threads = 1;            // where data.decode_threads is auto
  Account account = {};
};

// Shape of a named data set as cut by `options`, without opening it (for
// `plan`); the files of image-folder are listed, those of a text and of arrays
// are mapped.
// Throws as load_dataset() does.
struct DatasetShape : ExampleShape {
  std::int64_t train = 0, test = 0;  // examples
  Account account = {};
};
DatasetShape dataset_shape(const DataOptions& options);
std::vector<std::string> dataset_names();
// Whether the images are files that are decoded for each batch (image-folder).
bool has_files(const DataOptions& options);
bool is_text(const DataOptions& options);
// Whether it is a user's own arrays.
bool is_arrays(const DataOptions& options);
// The vocabulary size of a text: its tokens are 0 .. vocabulary_of() - 1.
std::int64_t vocabulary_of(const DataOptions& options);
// What the examples are: "images", "windows" of a text, or "examples".
const char* examples_of(const DataOptions& options);

// Reads a data set. options.root: a folder, or nullopt for the usual places
// (the environment's ABTRAIN_DATA, ./data, ~/.cache/abtrain/data, and for
// fashion-mnist Debian's /usr/share/datasets/fashion-mnist). Throws
// MissingInput, naming every place searched and where to get the data set;
// DamagedData, naming the file, what was expected and what was found; Config if
// it cannot be cut to data.subset or pooled to data.pool. `log`, which must
// outlive the data set, gets information and a warning for each damaged file.
// `reads_values`: looks at all numbers of arrays, which must be finite.
Dataset load_dataset(const DataOptions& options, Log* log = nullptr, bool reads_values = true);

// Where `name` would be read from, how to get it and how its files must be laid
// out, for `doctor`. `found_in` is empty if it is not there. Throws
// ConflictError for an unknown name.
struct DatasetPlace {
  std::string found_in, how_to_get, layout;
};
DatasetPlace find_dataset(
    const std::string& name, const std::optional<std::string>& root = std::nullopt);

// Images as values, mean-pooled to this side if it is above 0.
Examples as_floats(const Examples& images, std::int64_t side);
// The examples' numbers by their label, those of a label in a seeded order; windows of a text in
// the order of the text. Throws Error(Config) for examples without a label each.
std::vector<std::int64_t> by_class(const Examples& examples, std::uint64_t seed);
// Examples number `indices`, an int64 tensor, in its order.
Examples chosen(const Examples& all, const at::Tensor& indices);
// Removes the last `count` examples of a seeded permutation from the training
// examples and returns them. Throws Error(Config) for a count out of range.
Examples hold_out(Examples& train, std::int64_t count, std::uint64_t seed);
// The validation examples of a run: `count` training examples, which are held out, or the data
// set's own if `count` is 0.
Examples take_validation(Dataset& set, std::int64_t count, std::uint64_t seed);
// The seed by which a data set without a test part is split: the same in every
// run, so that runs with other seeds can be compared.
inline constexpr std::uint64_t kSplitSeed = 0;

}  // namespace abtrain::data
