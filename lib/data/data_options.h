// Options of the config's `data:` and `order:` sections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::data {

struct DataOptions {
  std::string name = "fashion-mnist";  // one of dataset_names()
  std::string root = "auto";           // auto: search the usual places
  std::int64_t batch_size = 64;        // per worker and step
  std::string augment = "none";        // none | flip | crop | crop-flip
  std::int64_t pad = 4;                // border of the random crop, pixels
  double erase = 0;                    // probability of random erasing
  std::int64_t subset = 0;             // first training images; 0: all
  std::int64_t pool = 0;               // mean-pool to this side; 0: do not
  bool standardise = false;            // per pixel, replaces mean and std
  std::int64_t validation = 0;         // training images held out
  std::int64_t prefetch = 4;           // batches that the loader keeps ready
  std::string on_device = "auto";      // auto | true | false
  // Per channel, of pixel / 255; empty: the data set's own.
  std::vector<double> mean = {}, std = {};
  // The rest is for image-folder.
  std::int64_t image_size = 224;               // side of the network's input
  std::int64_t resize = 256;                   // shorter side before the crop
  std::vector<double> crop_scale = {0.08, 1};  // share of the area
  std::string decode_threads = "auto";  // per worker; auto: cores / workers
  double max_damaged = 0.001;  // share of a part's images that may be damaged
};

struct OrderOptions {
  // shuffle | sequential | grab | id-grab | cd-grab
  std::string name = "shuffle";
  // The rest is for the orders that are derived from gradients.
  std::string unit = "microbatch";  // microbatch | example
  std::string wire = "fp32";        // cd-grab: fp32 | int8 | sketch
  std::int64_t sketch = 128;        // numbers in a sketch
};

// Whether the order is derived from gradients.
bool is_balanced(const OrderOptions& options);

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(DataOptions& options);
Fields fields_of(OrderOptions& options);

}  // namespace abtrain::data
