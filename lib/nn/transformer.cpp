#include "nn/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace abtrain::nn {

namespace {

class Branch : public Sequential {
 public:
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    return input + Sequential::forward(input, pass);
  }
};

}  // namespace

at::Tensor Attention::turned(const at::Tensor& x, bool anew) {
  const std::int64_t tokens = x.size(2);
  const std::int64_t half = x.size(3) / 2;
  const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  if (anew || !cos_.defined() || cos_.size(0) != tokens || cos_.device() != x.device() ||
      cos_.scalar_type() != type) {
    constexpr double kBase = 10000;
    const auto exact = x.options().dtype(at::kDouble);
    const at::Tensor speed = at::pow(kBase, at::arange(half, exact) / -static_cast<double>(half));
    const at::Tensor angle = at::outer(at::arange(tokens, exact), speed);
    cos_ = angle.cos().to(type);
    sin_ = angle.sin().to(type);
  }
  const at::Tensor first = x.narrow(3, 0, half);
  const at::Tensor second = x.narrow(3, half, half);
  return at::cat({first * cos_ - second * sin_, second * cos_ + first * sin_}, 3)
      .to(x.scalar_type());
}

at::Tensor Attention::forward(const at::Tensor& input, const Pass& pass) {
  std::vector<at::Tensor> qkv;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    qkv.push_back(layers_[i].second->forward(input, pass));
  }
  if (qkv.size() == 1) {
    qkv = at::chunk(qkv[0], 3, 2);
  }
  for (at::Tensor& x : qkv) {  // B x heads x tokens x d
    x = x.view({input.size(0), input.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
  }
  if (rotary_) {
    qkv[0] = turned(qkv[0], pass.plain);
    qkv[1] = turned(qkv[1], pass.plain);
  }
  const at::Tensor mixed =
      at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, /*dropout_p=*/0, causal_);
  return layers_.back().second->forward(mixed.transpose(1, 2).flatten(2), pass);
}

std::unique_ptr<Layer> normal_linear(
    std::int64_t in, std::int64_t out, bool bias, double deviation) {
  return linear(in, out, bias, normal(deviation));
}

InnerWidths inner_widths(
    Widths& widths, const std::string& blocks, const InnerWidths& own, std::int64_t divisor) {
  const std::int64_t attention =
      widths.next({own.attention, {blocks + ".attn.*"}, divisor, /*is_inner=*/true});
  return {attention, widths.next({own.mlp, {blocks + ".mlp.*"}, 1, /*is_inner=*/true})};
}

std::unique_ptr<Layer> transformer_block(
    const BlockForm& form, std::unique_ptr<Layer> attention, std::unique_ptr<Layer> mlp) {
  auto block = std::make_unique<Sequential>();
  const auto add = [&](const char* norm, const char* name, std::unique_ptr<Layer> layer) {
    auto branch = std::make_unique<Branch>();
    branch->add(norm, layer_norm(form.features, form.eps));
    branch->add(name, std::move(layer));
    branch->add("", dropout(form.drop_rate, form.whole_examples));
    block->add("", std::move(branch));
  };
  add(form.attention_norm, "attn", std::move(attention));
  add(form.mlp_norm, "mlp", std::move(mlp));
  return block;
}

}  // namespace abtrain::nn
