// Options of the config's `data:` and `order:` sections.
#pragma once

#include <cstdint>
#include <string>

namespace abtrain {
class Fields;
}

namespace abtrain::data {

struct DataOptions {
  std::string name = "fashion-mnist";  // fashion-mnist | cifar10
  std::string root = "auto";           // auto: the usual places are searched
  std::int64_t batch_size = 64;        // a worker, a step
  std::string augment = "none";        // none | flip | crop | crop-flip
  std::int64_t pad = 4;                // of the random crop, pixels
  double erase = 0;                    // probability of random erasing
  std::int64_t validation = 0;         // training images held out
  std::int64_t prefetch = 4;           // batches that the loader keeps ready
};

struct OrderOptions {
  std::string name = "shuffle";  // shuffle | sequential
};

// The table of their keys, ranges and help (base/options.h).
Fields fields_of(DataOptions& options);
Fields fields_of(OrderOptions& options);

}  // namespace abtrain::data
