#include "base/options.h"
#include "nn/families.h"
#include "nn/model_options.h"

namespace abtrain::nn {
namespace {

const Names<TensorNames> kTensorNames = {
    {"timm", TensorNames::Timm}, {"torchvision", TensorNames::Torchvision}};

// The families whose names begin with `begin`.
std::vector<std::string> models_like(const std::string& begin) {
  std::vector<std::string> names = model_names();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(begin); });
  return names;
}

// The families with `widths`; mlp and cnn have `hidden` and `channels` instead.
std::vector<std::string> with_widths() {
  std::vector<std::string> names = model_names();
  std::erase_if(names, [](const std::string& name) {
    return name == "softmax" || name == "mlp" || name == "cnn" || name == "exported";
  });
  return names;
}

}  // namespace

std::string name_of(TensorNames names) {
  return name_in(kTensorNames, names);
}

Fields fields_of(ModelOptions& o) {
  Fields f;
  f.choice("name", o.name, model_names(), "the network to train");
  f.path_or(
      "file", "none", o.file,
      "the model of `exported`, a .pt2 file of torch.export.save or abtrain.save_model");
  f.flag(
       "eval_mode", o.eval_mode,
       "a file that was exported after eval() trains like that, with frozen running "
       "statistics and without dropout; false: it is refused")
      .free()
      .of({"exported"});
  f.integers("hidden", o.hidden, between(1, kMaxFeatures), "widths of the hidden linear layers")
      .of({"mlp", "cnn"});
  f.integers(
       "channels", o.channels, between(1, kMaxFeatures), "output channels of the convolutions")
      .of({"cnn"});
  f.number(
      "width", o.width, above_to(0, kWidest),
      "multiplier of all channel, feature and hidden sizes; not for softmax, "
      "which has none");
  f.auto_or_integers(
       "widths", o.widths, between(1, kMaxFeatures),
       "widths of single layers, each times model.width: for lenet5 and vgg the outputs of every "
       "layer but the classifier, for resnet the channels of each stage, for vit and gpt the inner "
       "features of attention and of the MLP; auto: as the name says")
      .of(with_widths());
  f.flag(
       "folded_head", o.folded_head,
       "the head's first kernel is as large as the image that reaches it, 1x1 for inputs of 32x32; "
       "false: timm's 7x7, most of whose taps see copies of the same pixels there")
      .of({"vgg11", "vgg13", "vgg16", "vgg19"});
  f.choice(
       "stem", o.stem,
       {{"auto", StemName::Auto}, {"imagenet", StemName::ImageNet}, {"cifar", StemName::Cifar}},
       "imagenet is a 7x7 convolution of stride 2 and a pooling layer, "
       "cifar one 3x3 convolution; auto: cifar for images up to 64 pixels")
      .of(models_like("resnet"));
  f.auto_or_integer(
       "patch_size", o.patch_size, between(1, 1024),
       "side of a patch in pixels; auto: 4 for images up to 64 pixels, "
       "else 16")
      .of(models_like("vit"));
  f.flag("qkv_bias", o.qkv_bias, "biases for queries, keys and values").of(models_like("vit"));
  f.number(
      "drop_rate", o.drop_rate, from_to_below(0, 1),
      "dropout rate before the classifier; for vgg with timm's head, also in "
      "the head; gpt: after the embeddings and at the end of each branch");
  f.number(
       "drop_path", o.drop_path, from_to_below(0, 1),
       "stochastic-depth rate; rises from 0 to this in the last block")
      .of(models_like("vit"));
  f.auto_or_integer(
       "layers", o.layers, between(1, 1000), "number of blocks; auto: as the name says")
      .of(models_like("gpt"));
  f.auto_or_integer(
       "heads", o.heads, between(1, 1000),
       "attention heads, among which the features are divided; auto: as "
       "the name says")
      .of(models_like("gpt"));
  f.auto_or_integer(
       "features", o.features, between(1, kMaxFeatures),
       "features per token; auto: as the name says")
      .of(models_like("gpt"));
  f.auto_or_integer(
       "context", o.context, between(1, kMaxFeatures),
       "learned positions, at least data.context; auto: data.context")
      .of(models_like("gpt"));
  f.choice(
       "positions", o.positions, {{"learned", Positions::Learned}, {"rotary", Positions::Rotary}},
       "how positions are encoded; learned: by an embedding, as in GPT-2; "
       "rotary: by rotating queries and keys")
      .of(models_like("gpt"));
  f.choice(
       "activation", o.activation, {{"gelu", Activation::Gelu}, {"swiglu", Activation::SwiGlu}},
       "gelu in GPT-2's tanh form, with four times the features inside; "
       "swiglu: silu(gate) * up, with 8/3 times the features, rounded up to a "
       "multiple of 8")
      .of(models_like("gpt"));
  f.flag(
       "tied", o.tied,
       "the head is the token embedding, as in GPT-2; false: the head is "
       "a matrix of its own")
      .of(models_like("gpt"));
  f.flag(
       "split_qkv", o.split_qkv,
       "queries, keys and values have a matrix each; false: one for all "
       "three")
      .of(models_like("gpt"));
  f.choice(
      "init", o.init,
      {{"kaiming", InitName::Kaiming},
       {"orthogonal", InitName::Orthogonal},
       {"zeros", InitName::Zeros}},
      "how weights are initialized; zeros: only for models without hidden "
      "layers");
  f.path_or(
      "weights", "none", o.weights,
      "safetensors file to start from, with timm's or torchvision's tensor "
      "names, for gpt with those of Hugging Face's GPT-2, or none");
  f.texts("fresh", o.fresh, "names or globs of layers that are not loaded from `weights`");
  f.path_or(
      "adapter", "none", o.adapter,
      "folder of a LoRA adapter in PEFT's format, which is added to the initial weights, or none; "
      "method.remainder freeze goes on with its factors");
  f.texts(
      "frozen", o.frozen,
      "names or globs of layers or tensors that are not trained; `!` in front of one exempts what "
      "it matches, and the last match decides");
  f.choice(
      "names", o.names, kTensorNames,
      "naming scheme of the tensors in model.safetensors; gpt always has "
      "Hugging Face's names");
  return f;
}

}  // namespace abtrain::nn
