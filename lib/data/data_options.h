// Options of the config's `data:` section.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::data {

enum class AugmentName { None, Flip, Crop, CropFlip };
enum class TokenType { Bytes, Uint16, Uint32 };
enum class Task { Auto, Classes, Regression };

// How the training examples are divided among the workers. Even: each worker gets its share of all
// examples. ByClass: the workers get examples of different classes, or different parts of a text.
enum class Shards { Even, ByClass };

struct DataOptions {
  std::string name = "fashion-mnist";    // one of dataset_names()
  std::optional<std::string> root = {};  // nullopt: search the usual places
  std::int64_t batch_size = 64;          // per worker and step
  AugmentName augment = AugmentName::None;
  std::int64_t pad = 4;         // border of the random crop, pixels
  double erase = 0;             // probability of random erasing
  std::int64_t subset = 0;      // training examples used, the first ones; 0: all
  std::int64_t pool = 0;        // mean-pool to this side; 0: no pooling
  bool standardize = false;     // per pixel, in place of mean and std
  std::int64_t validation = 0;  // training examples held out
  Shards shards = Shards::Even;
  std::optional<bool> on_device = {};  // nullopt: depends on the memory that the images take
  // Per channel, of pixel / 255; empty: the data set's own values.
  std::vector<double> mean = {}, std = {};
  // The following options are for image-folder.
  std::int64_t image_size = 224;                    // side of the network's input
  std::int64_t resize = 256;                        // shorter side before the crop
  std::vector<double> crop_scale = {0.08, 1};       // least and largest share of the area
  std::optional<std::int64_t> decode_threads = {};  // nullopt: cores / workers
  double max_damaged = 0.001;                       // share of a part's images that may be damaged
  // The following options are for texts.
  std::int64_t context = 256;  // tokens per window
  TokenType tokens = TokenType::Bytes;
  std::optional<std::int64_t> vocabulary = {};  // nullopt: depends on `tokens`
  double bytes_per_token = 1;                   // average bytes per token, for bits per byte
  std::optional<std::string> test = {};         // test text; nullopt: by file names, or the tail
  // Share of the examples that becomes the test set if there is no other: the end of a text, or
  // random examples of image-folder and arrays.
  double test_share = 0.01;
  Task task = Task::Auto;  // for arrays
};

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(DataOptions& options);

}  // namespace abtrain::data
