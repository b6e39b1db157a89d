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
  std::string name = "mlp";  // a family in nn/families.h
  std::vector<std::int64_t> hidden = {1024, 1024, 1024};  // mlp, cnn
  std::vector<std::int64_t> channels = {32, 64};          // cnn
  double width = 1.0;               // channel multiplier of the conv nets
  std::string stem = "auto";        // resnet: auto | imagenet | cifar
  std::string patch_size = "auto";  // vit: auto or pixels
  bool qkv_bias = true;             // vit
  double drop_rate = 0;             // dropout before the classifier
  double drop_path = 0;             // vit: stochastic depth, last block
  std::string init = "kaiming";     // kaiming | orthogonal | zeros
  std::string weights = "none";     // safetensors file to start from
  std::vector<std::string> fresh;   // layers not loaded from `weights`
  std::string names = "timm";       // timm | torchvision, for saved tensors
};

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(ModelOptions& options);

}  // namespace abtrain::nn
