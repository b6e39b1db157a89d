#include "base/options.h"
#include "nn/families.h"
#include "nn/model_options.h"

namespace abtrain::nn {
namespace {

Names<TensorNames> tensor_names() {
  return {
      {"timm", TensorNames::Timm}, {"torchvision", TensorNames::Torchvision}};
}

}  // namespace

std::string name_of(TensorNames names) {
  return name_in(tensor_names(), names);
}

Fields fields_of(ModelOptions& o) {
  Fields f;
  f.choice("name", o.name, model_names(), "model family");
  f.integers(
      "hidden",
      o.hidden,
      between(1, kMostFeatures),
      "mlp, cnn: widths of the hidden linear layers");
  f.integers(
      "channels",
      o.channels,
      between(1, kMostFeatures),
      "cnn: output channels of the convolutions");
  f.number(
      "width",
      o.width,
      above_to(0, kWidest),
      "conv nets: multiplier of the channel counts");
  f.choice(
      "stem",
      o.stem,
      {{"auto", StemName::Auto},
       {"imagenet", StemName::ImageNet},
       {"cifar", StemName::Cifar}},
      "resnet: imagenet is a 7x7 convolution of stride 2 and a pooling layer, "
      "cifar one 3x3 convolution; auto: cifar for images up to 64 pixels");
  f.auto_or_integer(
      "patch_size",
      o.patch_size,
      between(1, 1024),
      "vit: side of a patch in pixels; auto: 4 for images up to 64 pixels, "
      "else 16");
  f.flag("qkv_bias", o.qkv_bias, "vit: biases for queries, keys and values");
  f.number(
      "drop_rate",
      o.drop_rate,
      from_to_below(0, 1),
      "dropout rate before the classifier; for vgg with timm's head, also in "
      "the head");
  f.number(
      "drop_path",
      o.drop_path,
      from_to_below(0, 1),
      "vit: stochastic-depth rate; rises from 0 to this in the last block");
  f.choice(
      "init",
      o.init,
      {{"kaiming", InitName::Kaiming},
       {"orthogonal", InitName::Orthogonal},
       {"zeros", InitName::Zeros}},
      "how weights are initialized; zeros: only for models without hidden "
      "layers");
  f.text_or(
      "weights",
      "none",
      o.weights,
      "safetensors file to start from, with timm's or torchvision's tensor "
      "names, or none");
  f.texts(
      "fresh",
      o.fresh,
      "names or globs of layers that are not loaded from `weights`");
  f.choice(
      "names",
      o.names,
      tensor_names(),
      "naming scheme of the tensors in model.safetensors");
  return f;
}

}  // namespace abtrain::nn
