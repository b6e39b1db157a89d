#include "base/options.h"
#include "nn/families.h"
#include "nn/model_options.h"

namespace abtrain::nn {

Fields fields_of(ModelOptions& o) {
  Fields f;
  f.choice("name", o.name, model_names(), "family");
  f.integers(
      "hidden",
      o.hidden,
      between(1, 1e6),
      "mlp, cnn: widths of the hidden linear layers");
  f.integers(
      "channels",
      o.channels,
      between(1, 1e6),
      "cnn: output channels of the convolutions");
  f.number(
      "width",
      o.width,
      above_to(0, 1000),
      "conv nets: factor on the channel counts");
  f.choice(
      "stem",
      o.stem,
      {"auto", "imagenet", "cifar"},
      "resnet: 7x7 convolution of stride 2 and a pooling, or one of 3x3; auto: "
      "cifar for images below 65 pixels");
  f.auto_or_integer(
      "patch_size",
      o.patch_size,
      between(1, 1024),
      "vit: side of a patch, pixels; auto: 16, for images below 65 pixels 4");
  f.flag("qkv_bias", o.qkv_bias, "vit: biases of queries, keys and values");
  f.number(
      "drop_rate",
      o.drop_rate,
      from_to_below(0, 1),
      "dropout before the classifier; vgg with timm's head: in the head");
  f.number(
      "drop_path",
      o.drop_path,
      from_to_below(0, 1),
      "vit: stochastic depth, rising from 0 to this at the last block");
  f.choice(
      "init",
      o.init,
      {"kaiming", "orthogonal", "zeros"},
      "how weights are initialised; zeros: of a model of one layer");
  f.text(
      "weights",
      o.weights,
      "safetensors file to start from, with timm's or torchvision's names, "
      "or none");
  f.texts(
      "fresh",
      o.fresh,
      "names or globs of layers that are not taken from `weights`");
  f.choice(
      "names",
      o.names,
      {"timm", "torchvision"},
      "whose names the tensors of model.safetensors have");
  return f;
}

}  // namespace abtrain::nn
