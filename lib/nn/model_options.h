// Options of the config's `model:` section.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::nn {

// The largest `width`, and the largest number in `hidden` and `channels`.
inline constexpr double kWidest = 1000;
inline constexpr double kMaxFeatures = 1e6;

enum class StemName { Auto, ImageNet, Cifar };
enum class InitName { Kaiming, Orthogonal, Zeros };
enum class Positions { Learned, Rotary };
enum class Activation { Gelu, SwiGlu };
// The library that names the tensors of a file.
enum class TensorNames { Timm, Torchvision };

struct ModelOptions {
  std::string name = "mlp";                               // a family in nn/families.h
  std::optional<std::string> file = {};                   // exported: a .pt2 file
  bool eval_mode = false;                                 // exported: trains in eval() mode
  std::vector<std::int64_t> hidden = {1024, 1024, 1024};  // mlp, cnn
  std::vector<std::int64_t> channels = {32, 64};          // cnn
  double width = 1.0;                                     // multiplier of channels and features
  // Widths of the layers that the family lists (Architecture::widths), each times `width`; empty:
  // the family's own widths.
  std::vector<std::int64_t> widths = {};
  bool folded_head = false;        // vgg: head kernel fits its input
  StemName stem = StemName::Auto;  // resnet
  // vit, in pixels; nullopt: depends on the size of the images.
  std::optional<std::int64_t> patch_size;
  bool qkv_bias = true;  // vit
  double drop_rate = 0;  // dropout before the classifier; gpt: everywhere
  double drop_path = 0;  // vit: stochastic-depth rate of the last block
  // gpt. nullopt: as the model's name says; for `context`, data.context.
  std::optional<std::int64_t> layers, heads, features, context;
  Positions positions = Positions::Learned;
  Activation activation = Activation::Gelu;
  bool tied = true;        // the head is the embedding
  bool split_qkv = false;  // three matrices for queries, keys and values
  InitName init = InitName::Kaiming;
  std::optional<std::string> weights;     // safetensors file to start from
  std::vector<std::string> fresh;         // layers not loaded from `weights`
  std::optional<std::string> adapter;     // folder of a PEFT adapter to start from
  std::vector<std::string> frozen;        // tensors that are not trained (Model::freeze)
  TensorNames names = TensorNames::Timm;  // in the saved model
};

// The name as a configuration writes it.
std::string name_of(TensorNames names);

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(ModelOptions& options);

}  // namespace abtrain::nn
