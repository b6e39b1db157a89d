#include "nn/grouped_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
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

// c = a b + beta c, with beta 0 or 1.
void product(const at::Tensor& a, const at::Tensor& b, at::Tensor c, float beta) {
  if (a.scalar_type() == at::kBFloat16 && c.scalar_type() == at::kFloat) {
    ops::bf16_product(a, b, c, beta);
  } else if (beta == 0) {
    at::mm_out(c, a, b);
  } else {
    at::addmm_out(c, c, a, b);
  }
}

class GroupedLinear : public torch::autograd::Function<GroupedLinear> {
 public:
  static at::Tensor forward(
      AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
      const std::optional<at::Tensor>& bias, std::int64_t groups, at::ScalarType type) {
    const at::Tensor x = rows_of(input, type);
    const at::Tensor w = weight.to(type);
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.back() = w.size(0);
    at::Tensor y;
    if (input.is_cuda()) {
      y = at::_unsafe_view(on_gpu(x, w, bias ? bias->to(type) : at::Tensor(), groups), sizes);
    } else {
      y = at::empty(sizes, weight.options().requires_grad(false));
      if (bias) {
        y.copy_(*bias);
      }
      const at::Tensor rows = y.view({x.size(0), w.size(0)});
      for (std::int64_t g = 0; g < groups; ++g) {
        product(part(x, g, groups), own(w, g, groups).t(), part(rows, g, groups), bias ? 1 : 0);
      }
    }
    context->save_for_backward({x, w, weight, bias.value_or(at::Tensor())});
    context->saved_data["sizes"] = input.sizes();
    context->saved_data["type"] = input.scalar_type();
    context->saved_data["groups"] = groups;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    const std::int64_t groups = context->saved_data["groups"].toInt();
    at::Tensor dx, dw, db;
    const at::Tensor dy = rows_of(gradients[0], w.scalar_type());
    if (context->needs_input_grad(0)) {
      dx = at::empty(x.sizes(), (dy.is_cuda() ? dy : saved[2]).options().requires_grad(false));
      if (dy.is_cuda()) {
        at::Tensor by_group = batch(dx, groups);
        at::bmm_out(by_group, batch(dy, groups), w.unflatten(0, {groups, -1}));
      } else {
        for (std::int64_t g = 0; g < groups; ++g) {
          product(part(dy, g, groups), own(w, g, groups), part(dx, g, groups), 0);
        }
      }
      dx = dx.view(context->saved_data["sizes"].toIntVector())
               .to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      dw = gradient_of(saved[2], [&](const at::Tensor& place) {
        for (std::int64_t g = 0; g < groups; ++g) {
          product(part(dy, g, groups).t(), part(x, g, groups), own(place, g, groups), 1);
        }
      });
    }
    if (saved[3].defined() && context->needs_input_grad(2)) {
      if (dy.is_cuda() && dy.scalar_type() == at::kBFloat16) {
        // LibTorch's sum over the rows takes five times as long as reading them.
        const at::Tensor ones = at::ones({1, dy.size(0)}, dy.options());
        db = gradient_of(saved[3], [&](const at::Tensor& place) {
          ops::bf16_product(ones, dy, place.unsqueeze(0), 1);
        });
      } else {
        db = gradients[0].reshape({-1, dy.size(1)}).sum(0);
      }
    }
    return {dx, dw, db, {}, {}};
  }

 private:
  static at::Tensor rows_of(const at::Tensor& tensor, at::ScalarType type) {
    return tensor.reshape({-1, tensor.size(-1)}).to(type).contiguous();
  }
  // The features of a group, and its rows of the weight.
  static at::Tensor part(const at::Tensor& rows, std::int64_t g, std::int64_t groups) {
    const std::int64_t width = rows.size(1) / groups;
    return rows.narrow(1, g * width, width);
  }
  static at::Tensor own(const at::Tensor& weight, std::int64_t g, std::int64_t groups) {
    const std::int64_t height = weight.size(0) / groups;
    return weight.narrow(0, g * height, height);
  }
  // Rows of features as groups x rows x features of a group, a view.
  static at::Tensor batch(const at::Tensor& rows, std::int64_t groups) {
    return rows.unflatten(1, {groups, -1}).transpose(0, 1);
  }
  static at::Tensor on_gpu(
      const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias, std::int64_t groups) {
    if (groups == 1) {
      return at::linear(x, w, bias);
    }
    const at::Tensor y = at::empty({x.size(0), w.size(0)}, x.options());
    at::Tensor by_group = batch(y, groups);
    at::bmm_out(by_group, batch(x, groups), w.unflatten(0, {groups, -1}).mT());
    return bias.defined() ? y.add_(bias) : y;
  }
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

at::Tensor grouped_linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, std::int64_t groups,
    at::ScalarType type) {
  return GroupedLinear::apply(
      input, weight, bias.defined() ? std::optional(bias) : std::nullopt, groups, type);
}

at::Tensor exchange_groups(const at::Tensor& input, std::int64_t groups) {
  return input.unflatten(-1, {groups, groups, -1}).transpose(-3, -2).flatten(-3);
}

}  // namespace abtrain::nn
