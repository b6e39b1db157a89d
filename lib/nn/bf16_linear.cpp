#include "nn/bf16_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <vector>

#include "ops/bf16_product.h"

namespace abtrain::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor rows_of(const at::Tensor& tensor) {
  return tensor.reshape({-1, tensor.size(-1)}).to(at::kBFloat16).contiguous();
}

class Bf16Linear : public torch::autograd::Function<Bf16Linear> {
 public:
  static at::Tensor forward(
      AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
      const std::optional<at::Tensor>& bias) {
    const at::Tensor x = rows_of(input);
    const at::Tensor w = weight.to(at::kBFloat16);
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.back() = w.size(0);
    at::Tensor y = at::empty(sizes, weight.options().requires_grad(false));
    if (bias) {
      y.copy_(*bias);
    }
    ops::bf16_product(x, w.t(), y.view({x.size(0), w.size(0)}), bias ? 1 : 0);
    context->save_for_backward({x, w, weight});
    context->saved_data["sizes"] = input.sizes();
    context->saved_data["biased"] = bias.has_value();
    context->saved_data["type"] = input.scalar_type();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    at::Tensor dx, dw, db;
    const at::Tensor dy = rows_of(gradients[0]);
    if (context->needs_input_grad(0)) {
      dx = at::empty({x.size(0), x.size(1)}, saved[2].options().requires_grad(false));
      ops::bf16_product(dy, w, dx);
      dx = dx.view(context->saved_data["sizes"].toIntVector())
               .to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      // Where there is a place to add to, the weight's accumulator is given nothing to add.
      const at::Tensor& place = saved[2].grad();
      dw = place.defined() ? at::Tensor() : at::zeros_like(saved[2]);
      ops::bf16_product(dy.t(), x, place.defined() ? place : dw, 1);
    }
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(2)) {
      db = gradients[0].reshape({-1, dy.size(1)}).sum(0);
    }
    return {dx, dw, db};
  }
};

}  // namespace

at::Tensor bf16_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return Bf16Linear::apply(input, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

}  // namespace abtrain::nn
