// Options of the config's `model:` section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::nn {

struct ModelOptions {
  std::string name = "mlp";  // softmax | mlp | lenet5 | vgg16-small
  std::vector<std::int64_t> hidden = {1024, 1024, 1024};  // mlp
  double width = 1.0;              // channel multiplier of the conv nets
  std::string init = "kaiming";    // kaiming | orthogonal
};

// The table of their keys, ranges and help (base/options.h).
Fields fields_of(ModelOptions& options);

}  // namespace abtrain::nn
