#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/transformer.h"

namespace abtrain::nn {

namespace {

constexpr std::int64_t kDepth = 12;
constexpr std::int64_t kHeadFeatures = 64;
constexpr double kEps = 1e-6;

std::unique_ptr<Layer> block(
    std::int64_t features, std::int64_t heads, const InnerWidths& inside, bool qkv_bias,
    double drop_path) {
  auto attention = std::make_unique<Attention>(heads, /*causal=*/false, /*rotary=*/false);
  attention->add("qkv", normal_linear(features, 3 * inside.attention, qkv_bias));
  attention->add("proj", normal_linear(inside.attention, features));
  auto mlp = std::make_unique<Sequential>();
  mlp->add("fc1", normal_linear(features, inside.mlp));
  mlp->add("act", gelu());
  mlp->add("fc2", normal_linear(inside.mlp, features));
  return transformer_block(
      {"norm1", "norm2", features, kEps, drop_path, /*whole_examples=*/true}, std::move(attention),
      std::move(mlp));
}

// Maps images to B x (1 + patches) x features: a class token, then the patches, with the position
// embeddings added.
class Embedding : public Layer {
 public:
  Embedding(std::int64_t channels, std::int64_t features, std::int64_t patch, std::int64_t patches)
      : token_(at::zeros({1, 1, features})),
        places_(at::zeros({1, 1 + patches, features})),
        patch_(conv2d(
            channels, features,
            {.kernel = patch,
             .stride = patch,
             .padding = 0,
             .init = uniform_by_fan_in(channels * patch * patch)})) {}

  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    const at::Tensor patches = patch_->forward(input, pass).flatten(2).transpose(1, 2);
    return at::cat({token_.expand({input.size(0), -1, -1}), patches}, 1) + places_;
  }
  void list(const std::string& prefix, NamedTensors& tensors) override {
    constexpr double kTokenDeviation = 1e-6;
    tensors.parameter(prefix + "cls_token", token_, false, {Init::Kind::Normal, kTokenDeviation});
    tensors.parameter(prefix + "pos_embed", places_, false, {Init::Kind::Normal, kDeviation});
    patch_->list(prefix + "patch_embed.proj.", tensors);
  }

 private:
  at::Tensor token_, places_;
  std::unique_ptr<Layer> patch_;
};

TorchvisionName torchvision_vit_name(const std::string& name) {
  constexpr std::array<Renaming, 5> kOuter = {
      {{"cls_token", "class_token"},
       {"pos_embed", "encoder.pos_embedding"},
       {"patch_embed.proj.", "conv_proj."},
       {"norm.", "encoder.ln."},
       {"head.", "heads.head."}}};
  constexpr std::array<Renaming, 6> kInner = {
      {{"norm1.", "ln_1."},
       {"attn.qkv.", "self_attention.in_proj_"},
       {"attn.proj.", "self_attention.out_proj."},
       {"norm2.", "ln_2."},
       {"mlp.fc1.", "mlp.0."},
       {"mlp.fc2.", "mlp.3."}}};
  const std::string blocks = "blocks.";
  if (!name.starts_with(blocks)) {
    return {renamed(kOuter, name)};
  }
  const std::size_t dot = name.find('.', blocks.size());
  return {
      "encoder.layers.encoder_layer_" + name.substr(blocks.size(), dot - blocks.size()) + "." +
      renamed(kInner, name.substr(dot + 1))};
}

}  // namespace

Architecture vit(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  const std::int64_t heads = sizes[0] / kHeadFeatures;
  const std::int64_t features = scaled(sizes[0], options, heads);
  const std::int64_t patch = options.patch_size.value_or(is_small(shape) ? 4 : 16);
  ABT_CHECK(
      shape.height % patch == 0 && shape.width % patch == 0, Config,
      "model.patch_size: patches of {}x{} do not cover images of {}x{}", patch, patch, shape.height,
      shape.width);
  auto layers = std::make_unique<Sequential>();
  layers->add(
      "", std::make_unique<Embedding>(
              shape.channels, features, patch, (shape.height / patch) * (shape.width / patch)));
  Widths widths(options);
  const InnerWidths inside = inner_widths(widths, "blocks.*", {features, 4 * features}, heads);
  for (std::int64_t i = 0; i < kDepth; ++i) {
    const double rate =
        options.drop_path * static_cast<double>(i) / static_cast<double>(kDepth - 1);
    layers->add(formatted("blocks.{}", i), block(features, heads, inside, options.qkv_bias, rate));
  }
  layers->add("", std::make_unique<Function>([](const at::Tensor& tokens, const Pass&) {
                return tokens.select(1, 0);
              }));
  layers->add("norm", layer_norm(features, kEps));
  add_dropout(*layers, options);
  layers->add("head", normal_linear(features, shape.classes));
  return {
      .layers = std::move(layers),
      .keep_dense = {"patch_embed.proj", "head"},
      .torchvision_name = torchvision_vit_name,
      .widths = widths.all()};
}

}  // namespace abtrain::nn
