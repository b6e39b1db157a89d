#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "nn/families.h"
#include "nn/gelu.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/tape.h"
#include "nn/transformer.h"

namespace abtrain::nn {

namespace {

constexpr double kGptEps = 1e-5;

// silu(gate(x)) * up(x)
class Gated : public Layer {
 public:
  Gated(std::int64_t in, std::int64_t out)
      : gate_(normal_linear(in, out)), up_(normal_linear(in, out)) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    const at::Tensor up = up_->forward(input, pass);
    return at::silu(gate_->forward(input, pass)) * up;
  }
  void list(const std::string& prefix, NamedTensors& tensors) override {
    gate_->list(prefix + "c_gate.", tensors);
    up_->list(prefix + "c_fc.", tensors);
  }

 private:
  std::unique_ptr<Layer> gate_, up_;
};

// `end`: the standard deviation of the initial weights at the branches' ends.
std::unique_ptr<Layer> gpt_block(
    std::int64_t features, std::int64_t heads, const InnerWidths& inside, double end,
    const ModelOptions& options) {
  auto attention =
      std::make_unique<Attention>(heads, /*causal=*/true, options.positions == Positions::Rotary);
  if (options.split_qkv) {
    for (const char* name : {"c_q", "c_k", "c_v"}) {
      attention->add(name, normal_linear(features, inside.attention));
    }
  } else {
    attention->add("c_attn", normal_linear(features, 3 * inside.attention));
  }
  attention->add("c_proj", normal_linear(inside.attention, features, true, end));
  auto mlp = std::make_unique<Sequential>();
  if (options.activation == Activation::SwiGlu) {
    mlp->add("", std::make_unique<Gated>(features, inside.mlp));
  } else {
    mlp->add("c_fc", normal_linear(features, inside.mlp));
    mlp->add("", std::make_unique<Function>([](const at::Tensor& x, const Pass& pass) {
               return pass.plain ? at::gelu(x, "tanh") : gelu_tanh(x);
             }));
  }
  mlp->add("c_proj", normal_linear(inside.mlp, features, true, end));
  return transformer_block(
      {"ln_1", "ln_2", features, kGptEps, options.drop_rate, /*whole_examples=*/false},
      std::move(attention), std::move(mlp));
}

// Maps tokens, B x T, to B x T x features.
class TokenEmbedding : public Layer {
 public:
  // context: the number of learned positions; 0: none.
  TokenEmbedding(std::int64_t vocabulary, std::int64_t context, std::int64_t features)
      : tokens_(at::empty({vocabulary, features})) {
    if (context > 0) {
      places_ = at::empty({context, features});
    }
  }
  const at::Tensor& tokens() const {
    return tokens_;
  }
  at::Tensor forward(const at::Tensor& input, const Pass&) override {
    const at::Tensor x = at::embedding(tokens_, input);
    return places_.defined() ? x + places_.narrow(0, 0, input.size(1)) : x;
  }
  void list(const std::string& prefix, NamedTensors& tensors) override {
    constexpr Init kDrawn{Init::Kind::Normal, kDeviation};
    tensors.parameter(prefix + "wte.weight", tokens_, false, kDrawn);
    if (places_.defined()) {
      tensors.parameter(prefix + "wpe.weight", places_, false, kDrawn);
    }
  }

 private:
  at::Tensor tokens_, places_;
};

// GPT-2 stores queries, keys and values as one matrix.
PartOf gpt_part_of(const std::string& name) {
  constexpr std::array<const char*, 3> kParts = {"c_q", "c_k", "c_v"};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const std::string part = formatted(".{}.", kParts[i]);
    if (const std::size_t offset = name.find(part); offset != std::string::npos) {
      return {
          name.substr(0, offset) + ".c_attn." + name.substr(offset + part.size()),
          static_cast<int>(i), static_cast<int>(kParts.size())};
    }
  }
  return {name};
}

}  // namespace

Architecture gpt(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  const std::int64_t depth = options.layers.value_or(sizes[0]);
  const std::int64_t heads = options.heads.value_or(sizes[1]);
  const std::int64_t unscaled = options.features.value_or(sizes[2]);
  const std::int64_t divisor = options.positions == Positions::Rotary ? 2 * heads : heads;
  const std::int64_t features =
      options.width == 1.0 ? unscaled : scaled(unscaled, options, divisor);
  ABT_CHECK(
      features % heads == 0, Config, "model.heads: expected a divisor of the {} features, got {}",
      features, heads);
  ABT_CHECK(
      options.positions == Positions::Learned || features / heads % 2 == 0, Config,
      "model.positions: rotary turns pairs of a head's features; expected an "
      "even number of them, got {}",
      features / heads);
  const std::int64_t context = options.context.value_or(shape.context);
  ABT_CHECK(
      context >= shape.context, Config,
      "model.context: expected at least data.context ({}), got {}", shape.context, context);
  const bool learned = options.positions == Positions::Learned;
  const std::int64_t vocabulary = std::max(shape.classes, shape.vocabulary);
  auto embedding = std::make_unique<TokenEmbedding>(vocabulary, learned ? context : 0, features);
  const TokenEmbedding* tokens = embedding.get();
  auto layers = std::make_unique<Sequential>();
  layers->add("", std::move(embedding));
  add_dropout(*layers, options);
  // The residual branches add up, so their last layers start with smaller weights (Radford et al.
  // 2019).
  const double end = kDeviation / std::sqrt(2.0 * static_cast<double>(depth));
  const bool is_gated = options.activation == Activation::SwiGlu;
  Widths widths(options);
  const InnerWidths inside = inner_widths(
      widths, "h.*", {features, is_gated ? ((8 * features + 2) / 3 + 7) / 8 * 8 : 4 * features},
      divisor);
  for (std::int64_t i = 0; i < depth; ++i) {
    layers->add(formatted("h.{}", i), gpt_block(features, heads, inside, end, options));
  }
  layers->add("ln_f", layer_norm(features, kGptEps));
  Architecture architecture;
  architecture.widths = widths.all();
  if (options.tied) {
    layers->add("", std::make_unique<Function>([tokens](const at::Tensor& x, const Pass& pass) {
                  const at::Tensor& weight = tokens->tokens();
                  return linear(
                      x, weight, {},
                      product_type(pass.precision, weight, x.numel() / x.size(-1) * weight.numel()),
                      nullptr);
                }));
  } else {
    layers->add("lm_head", normal_linear(features, vocabulary, false));
    architecture.keep_dense = {"lm_head"};
  }
  architecture.layers = std::move(layers);
  architecture.file = {
      .library = "Hugging Face",
      .prefix = "transformer.",
      .transposed = {"h.*"},
      // Older files also hold the mask of causal attention.
      .ignored = {"h.*.attn.bias", "h.*.attn.masked_bias"},
      .part_of = gpt_part_of};
  if (options.tied) {
    architecture.file.copies.emplace_back("lm_head.weight", "wte.weight");
  }
  return architecture;
}

}  // namespace abtrain::nn
