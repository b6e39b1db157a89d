#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "nn/dropout.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace abtrain::nn {

namespace {

constexpr double kGptEps = 1e-5;
constexpr double kGptDeviation = 0.02;

// What the layers of one network share.
struct GptForm {
  std::int64_t layers, heads, features, context;
  const ModelOptions& options;

  std::int64_t head_features() const {
    return features / heads;
  }
  // The branches add up, so their ends start smaller (Radford et al. 2019).
  double end_deviation() const {
    return kGptDeviation / std::sqrt(2.0 * static_cast<double>(layers));
  }
};

std::unique_ptr<Linear> gpt_linear(
    std::int64_t in,
    std::int64_t out,
    double deviation = kGptDeviation,
    bool bias = true) {
  return std::make_unique<Linear>(in, out, bias, normal(deviation));
}

// Turns the pairs (i, i + d/2) of a head's d features by the angle position *
// 10000^(-2i/d) (Su et al. 2021). In fp32 where `x` has fewer bits.
class Rotary {
 public:
  // `x`: B x heads x tokens x d.
  at::Tensor turned(const at::Tensor& x) {
    const std::int64_t half = x.size(3) / 2;
    prepare(x.size(2), half, x.options());
    const at::Tensor first = x.narrow(3, 0, half);
    const at::Tensor second = x.narrow(3, half, half);
    return at::cat(
               {first * cos_ - second * sin_, second * cos_ + first * sin_}, 3)
        .to(x.scalar_type());
  }

 private:
  void prepare(
      std::int64_t tokens,
      std::int64_t half,
      const at::TensorOptions& like) {
    const auto type = like.dtype() == at::kDouble ? at::kDouble : at::kFloat;
    if (cos_.defined() && cos_.size(0) == tokens &&
        cos_.device() == like.device() && cos_.scalar_type() == type) {
      return;
    }
    constexpr double kBase = 10000;
    const auto exact = like.dtype(at::kDouble);
    const at::Tensor speed =
        at::pow(kBase, at::arange(half, exact) / -static_cast<double>(half));
    const at::Tensor angle = at::outer(at::arange(tokens, exact), speed);
    cos_ = angle.cos().to(type);
    sin_ = angle.sin().to(type);
  }
  at::Tensor cos_, sin_;  // tokens x d/2
};

// Each token attends to itself and to those before it.
class CausalAttention : public Layer {
 public:
  explicit CausalAttention(const GptForm& form)
      : heads_(form.heads),
        end_(gpt_linear(form.features, form.features, form.end_deviation())) {
    if (form.options.split_qkv) {
      for (const char* name : {"c_q.", "c_k.", "c_v."}) {
        begin_.push_back({name, gpt_linear(form.features, form.features)});
      }
    } else {
      begin_.push_back(
          {"c_attn.", gpt_linear(form.features, 3 * form.features)});
    }
    if (form.options.positions == Positions::Rotary) {
      rotary_.emplace();
    }
  }

  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    const std::int64_t features = input.size(2);
    std::vector<at::Tensor> qkv;
    for (const Part& part : begin_) {
      qkv.push_back(part.layer->forward(input, pass));
    }
    if (qkv.size() == 1) {
      qkv = at::chunk(qkv[0], 3, 2);
    }
    for (at::Tensor& x : qkv) {  // B x heads x tokens x d
      x = x.view({input.size(0), input.size(1), heads_, features / heads_})
              .transpose(1, 2);
    }
    if (rotary_) {
      qkv[0] = rotary_->turned(qkv[0]);
      qkv[1] = rotary_->turned(qkv[1]);
    }
    const at::Tensor mixed = at::scaled_dot_product_attention(
        qkv[0], qkv[1], qkv[2], {}, /*dropout_p=*/0, /*is_causal=*/true);
    return end_->forward(mixed.transpose(1, 2).reshape(input.sizes()), pass);
  }
  void visit(const std::string& prefix, Visitor& visitor) override {
    for (const Part& part : begin_) {
      part.layer->visit(prefix + part.name, visitor);
    }
    end_->visit(prefix + "c_proj.", visitor);
  }

 private:
  struct Part {
    const char* name;
    std::unique_ptr<Layer> layer;
  };
  std::int64_t heads_;
  std::vector<Part> begin_;  // one for all, or queries, keys and values
  std::unique_ptr<Layer> end_;
  std::optional<Rotary> rotary_;
};

class Mlp : public Layer {
 public:
  explicit Mlp(const GptForm& form) {
    const bool gated = form.options.activation == Activation::SwiGlu;
    const std::int64_t inside =
        gated ? ((8 * form.features + 2) / 3 + 7) / 8 * 8 : 4 * form.features;
    if (gated) {
      gate_ = gpt_linear(form.features, inside);
    }
    up_ = gpt_linear(form.features, inside);
    end_ = gpt_linear(inside, form.features, form.end_deviation());
  }
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    const at::Tensor up = up_->forward(input, pass);
    return end_->forward(
        gate_ == nullptr ? at::gelu(up, "tanh")
                         : at::silu(gate_->forward(input, pass)) * up,
        pass);
  }
  void visit(const std::string& prefix, Visitor& visitor) override {
    if (gate_ != nullptr) {
      gate_->visit(prefix + "c_gate.", visitor);
    }
    up_->visit(prefix + "c_fc.", visitor);
    end_->visit(prefix + "c_proj.", visitor);
  }

 private:
  std::unique_ptr<Layer> gate_, up_, end_;
};

// x + dropout(branch(norm(x))), for attention and then for the MLP.
class GptBlock : public Layer {
 public:
  explicit GptBlock(const GptForm& form)
      : norm1_(form.features, kGptEps),
        norm2_(form.features, kGptEps),
        attention_(form),
        mlp_(form),
        drop_(form.options.drop_rate) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    const auto branch = [&](const at::Tensor& x, Layer& norm, Layer& layer) {
      return x +
             drop_.forward(layer.forward(norm.forward(x, pass), pass), pass);
    };
    return branch(branch(input, norm1_, attention_), norm2_, mlp_);
  }
  void visit(const std::string& prefix, Visitor& visitor) override {
    norm1_.visit(prefix + "ln_1.", visitor);
    attention_.visit(prefix + "attn.", visitor);
    norm2_.visit(prefix + "ln_2.", visitor);
    mlp_.visit(prefix + "mlp.", visitor);
  }

 private:
  LayerNorm norm1_, norm2_;
  CausalAttention attention_;
  Mlp mlp_;
  Dropout drop_;
};

// Maps tokens, B x T, to logits, B x T x vocabulary.
class Gpt : public Layer {
 public:
  Gpt(const GptForm& form, std::int64_t vocabulary)
      : tokens_(at::empty({vocabulary, form.features})),
        drop_(form.options.drop_rate),
        norm_(form.features, kGptEps) {
    if (form.options.positions == Positions::Learned) {
      places_ = at::empty({form.context, form.features});
    }
    for (std::int64_t i = 0; i < form.layers; ++i) {
      blocks_.add(formatted("h.{}", i), std::make_unique<GptBlock>(form));
    }
    if (!form.options.tied) {
      head_ = gpt_linear(form.features, vocabulary, kGptDeviation, false);
    }
  }
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    at::Tensor x = at::embedding(tokens_, input);
    if (places_.defined()) {
      x = x + places_.narrow(0, 0, input.size(1));
    }
    x = blocks_.forward(drop_.forward(x, pass), pass);
    x = norm_.forward(x, pass);
    return head_ == nullptr ? at::linear(x, tokens_) : head_->forward(x, pass);
  }
  void visit(const std::string& prefix, Visitor& visitor) override {
    constexpr Init kDrawn{Init::Kind::Normal, kGptDeviation};
    visitor.parameter(prefix + "wte.weight", tokens_, false, kDrawn);
    if (places_.defined()) {
      visitor.parameter(prefix + "wpe.weight", places_, false, kDrawn);
    }
    blocks_.visit(prefix, visitor);
    norm_.visit(prefix + "ln_f.", visitor);
    if (head_ != nullptr) {
      head_->visit(prefix + "lm_head.", visitor);
    }
  }

 private:
  at::Tensor tokens_, places_;
  Dropout drop_;
  Sequential blocks_;
  LayerNorm norm_;
  std::unique_ptr<Layer> head_;  // null: the embedding is the head
};

// In GPT-2, queries, keys and values are one matrix.
PartOf gpt_part_of(const std::string& name) {
  constexpr std::array<const char*, 3> kParts = {"c_q", "c_k", "c_v"};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const std::string part = formatted(".{}.", kParts[i]);
    if (const std::size_t at = name.find(part); at != std::string::npos) {
      return {
          name.substr(0, at) + ".c_attn." + name.substr(at + part.size()),
          static_cast<int>(i),
          static_cast<int>(kParts.size())};
    }
  }
  return {name};
}

}  // namespace

Architecture gpt(
    const GptSizes& sizes,
    const ModelOptions& options,
    const InputShape& shape) {
  const std::int64_t heads = options.heads.value_or(sizes.heads);
  const std::int64_t unscaled = options.features.value_or(sizes.features);
  const std::int64_t divisor =
      options.positions == Positions::Rotary ? 2 * heads : heads;
  const std::int64_t features =
      options.width == 1.0 ? unscaled : scaled(unscaled, options, divisor);
  ABT_CHECK(
      features % heads == 0,
      Config,
      "model.heads: expected a divisor of the {} features, got {}",
      features,
      heads);
  ABT_CHECK(
      options.positions == Positions::Learned || features / heads % 2 == 0,
      Config,
      "model.positions: rotary turns pairs of a head's features; expected an "
      "even number of them, got {}",
      features / heads);
  const GptForm form{
      options.layers.value_or(sizes.layers),
      heads,
      features,
      options.context.value_or(shape.context),
      options};
  ABT_CHECK(
      form.context >= shape.context,
      Config,
      "model.context: expected at least data.context ({}), got {}",
      shape.context,
      form.context);
  Architecture architecture;
  architecture.layers = std::make_unique<Gpt>(form, shape.classes);
  if (!options.tied) {
    architecture.keep_dense = {"lm_head"};
  }
  architecture.file = {
      .library = "Hugging Face",
      .prefix = "transformer.",
      .transposed = "h.*",
      // Older files hold the mask of causal attention as well.
      .ignored = {"h.*.attn.bias", "h.*.attn.masked_bias"},
      .part_of = gpt_part_of};
  if (options.tied) {
    architecture.file.copies.emplace_back("lm_head.weight", "wte.weight");
  }
  return architecture;
}

}  // namespace abtrain::nn
