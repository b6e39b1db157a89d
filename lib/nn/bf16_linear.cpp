#include "nn/bf16_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
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
    at::Tensor y;
    if (input.is_cuda()) {
      y = at::_unsafe_view(at::linear(x, w, bias ? bias->to(at::kBFloat16) : at::Tensor()), sizes);
    } else {
      y = at::empty(sizes, weight.options().requires_grad(false));
      if (bias) {
        y.copy_(*bias);
      }
      ops::bf16_product(x, w.t(), y.view({x.size(0), w.size(0)}), bias ? 1 : 0);
    }
    context->save_for_backward({x, w, weight, bias.value_or(at::Tensor())});
    context->saved_data["sizes"] = input.sizes();
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
      if (dy.is_cuda()) {
        dx = at::mm(dy, w);
      } else {
        dx = at::empty({x.size(0), x.size(1)}, saved[2].options().requires_grad(false));
        ops::bf16_product(dy, w, dx);
      }
      dx = dx.view(context->saved_data["sizes"].toIntVector())
               .to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      dw = gradient_of(
          saved[2], [&](const at::Tensor& place) { ops::bf16_product(dy.t(), x, place, 1); });
    }
    if (saved[3].defined() && context->needs_input_grad(2)) {
      if (dy.is_cuda()) {
        // LibTorch's sum over the rows takes five times as long as reading them.
        const at::Tensor ones = at::ones({1, dy.size(0)}, dy.options());
        db = gradient_of(saved[3], [&](const at::Tensor& place) {
          ops::bf16_product(ones, dy, place.unsqueeze(0), 1);
        });
      } else {
        db = gradients[0].reshape({-1, dy.size(1)}).sum(0);
      }
    }
    return {dx, dw, db};
  }

 private:
  // Adds to the gradient of `parameter` where there is one, and gives its accumulator nothing
  // to add; else returns it.
  template <class Add>
  static at::Tensor gradient_of(const at::Tensor& parameter, const Add& add) {
    const at::Tensor place = parameter.is_leaf() ? parameter.grad() : at::Tensor();
    if (place.defined()) {
      add(place);
      return {};
    }
    const at::Tensor result = at::zeros_like(parameter);
    add(result);
    return result;
  }
};

}  // namespace

at::Tensor bf16_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return Bf16Linear::apply(input, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

}  // namespace abtrain::nn
