#include "nn/grouped_linear.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "ops/bf16_product.h"
#include "ops/thin_products.h"

namespace abtrain::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// c = a b + beta c, where beta is 0 or 1.
void product(const at::Tensor& a, const at::Tensor& b, at::Tensor c, float beta) {
  if (a.scalar_type() == at::kBFloat16 && c.scalar_type() == at::kFloat) {
    ops::bf16_product(a, b, c, beta);
  } else if (beta == 0) {
    at::mm_out(c, a, b);
  } else {
    at::addmm_out(c, c, a, b);
  }
}

// c += a^T b. If c is thin, computes it or its transpose by the products for thin matrices.
void add_gradient(const at::Tensor& a, const at::Tensor& b, at::Tensor c) {
  if (ops::has_thin_products(b, a.size(1))) {
    ops::add_thin_sums(a, b, c);
  } else if (ops::has_thin_products(a, b.size(1))) {
    const at::Tensor turned = at::zeros({c.size(1), c.size(0)}, c.options());
    ops::add_thin_sums(b, a, turned);
    c.add_(turned.t());
  } else {
    product(a.t(), b, c, 1);
  }
}

at::Tensor rows_of(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.reshape({-1, tensor.size(-1)}).to(type).contiguous();
}

// part(): a group's features. own(): a group's rows of the weight.
at::Tensor part(const at::Tensor& rows, std::int64_t g, std::int64_t groups) {
  const std::int64_t width = rows.size(1) / groups;
  return rows.narrow(1, g * width, width);
}
at::Tensor own(const at::Tensor& weight, std::int64_t g, std::int64_t groups) {
  const std::int64_t height = weight.size(0) / groups;
  return weight.narrow(0, g * height, height);
}
// y (+)= x times a group's weight (its transpose if `turned`); `beta` as for product().
void apply_weight(
    const at::Tensor& x, const at::Tensor& weight, bool turned, at::Tensor y, float beta) {
  const at::Tensor applied = turned ? weight.t() : weight;
  if (beta == 0 && ops::has_thin_products(x, y.size(1))) {
    ops::thin_product(x, applied.t().contiguous(), y);
  } else {
    product(x, applied, y, beta);
  }
}
// Views rows of features as groups x rows x features of a group.
at::Tensor batch(const at::Tensor& rows, std::int64_t groups) {
  return rows.unflatten(1, {groups, -1}).transpose(0, 1);
}

// y += x times each group's weight (its transpose if `turned`); x and y have rows of features.
void add_products(
    const at::Tensor& x, const at::Tensor& w, bool turned, std::int64_t groups, at::Tensor y) {
  if (x.is_cuda()) {
    if (groups == 1) {
      at::addmm_out(y, y, x, turned ? w.t() : w);
      return;
    }
    const at::Tensor weights = w.unflatten(0, {groups, -1});
    y.add_(at::bmm(batch(x, groups), turned ? weights.mT() : weights).transpose(0, 1).flatten(1));
    return;
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    apply_weight(part(x, g, groups), own(w, g, groups), turned, part(y, g, groups), 1);
  }
}

// Returns x times each group's weight (its transpose if `turned`), plus the bias if there is one.
// On the CPU the result is fp32 if x and w are bf16.
at::Tensor products(
    const at::Tensor& x, const at::Tensor& w, bool turned, std::int64_t groups,
    const at::Tensor& bias = {}) {
  const std::int64_t width = turned ? w.size(0) : groups * w.size(1);
  if (x.is_cuda()) {
    const at::Tensor rounded = bias.defined() ? bias.to(x.scalar_type()) : bias;
    if (groups == 1) {
      return turned ? at::linear(x, w, rounded) : at::mm(x, w);
    }
    const at::Tensor y = at::empty({x.size(0), width}, x.options());
    const at::Tensor weights = w.unflatten(0, {groups, -1});
    at::Tensor by_group = batch(y, groups);
    at::bmm_out(by_group, batch(x, groups), turned ? weights.mT() : weights);
    return bias.defined() ? y.add_(rounded) : y;
  }
  const at::Tensor y = at::empty(
      {x.size(0), width},
      x.options().dtype(x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type()));
  if (bias.defined()) {
    y.copy_(bias);
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    apply_weight(
        part(x, g, groups), own(w, g, groups), turned, part(y, g, groups), bias.defined() ? 1 : 0);
  }
  return y;
}

// If `parameter` has a gradient, adds to it and returns an undefined tensor, so that autograd adds
// nothing; otherwise returns the gradient.
template <class Add>
at::Tensor gradient_of(const at::Tensor& parameter, const Add& add) {
  const at::Tensor place = parameter.is_leaf() ? parameter.grad() : at::Tensor();
  if (place.defined()) {
    add(place);
    return {};
  }
  const at::Tensor result = at::zeros_like(parameter);
  add(result);
  return result;
}

// The gradient of a weight for these inputs and output gradients.
at::Tensor weight_gradient(
    const at::Tensor& weight, const at::Tensor& dy, const at::Tensor& x, std::int64_t groups) {
  return gradient_of(weight, [&](const at::Tensor& place) {
    for (std::int64_t g = 0; g < groups; ++g) {
      add_gradient(part(dy, g, groups), part(x, g, groups), own(place, g, groups));
    }
  });
}

at::Tensor bias_gradient(const at::Tensor& bias, const at::Tensor& gradient, const at::Tensor& dy) {
  if (!dy.is_cuda() || dy.scalar_type() != at::kBFloat16) {
    return gradient.reshape({-1, dy.size(1)}).sum(0);
  }
  // A product with ones: LibTorch's sum over the rows takes five times as long as reading them.
  const at::Tensor ones = at::ones({1, dy.size(0)}, dy.options());
  return gradient_of(
      bias, [&](const at::Tensor& place) { ops::bf16_product(ones, dy, place.unsqueeze(0), 1); });
}

// Reorders groups x groups runs of kSize elements (if 0: `size` elements), swapping the two group
// indices.
template <std::int64_t kSize, class T>
void exchange_row(const T* from, T* to, std::int64_t groups, std::int64_t size) {
  const std::int64_t run = kSize > 0 ? kSize : size;
  for (std::int64_t o = 0; o < groups; ++o) {
    for (std::int64_t i = 0; i < groups; ++i, to += run) {
      std::memcpy(to, from + (i * groups + o) * run, static_cast<std::size_t>(run) * sizeof(T));
    }
  }
}

template <class T>
auto row_exchange(std::int64_t size) {
  switch (size) {
    case 1:
      return &exchange_row<1, T>;
    case 2:
      return &exchange_row<2, T>;
    case 3:
      return &exchange_row<3, T>;
    case 4:
      return &exchange_row<4, T>;
    case 6:
      return &exchange_row<6, T>;
    case 8:
      return &exchange_row<8, T>;
    default:
      return &exchange_row<0, T>;
  }
}

// Rounds each row as a whole, then reorders it.
template <class From, class To>
void exchange(const From* from, To* to, std::int64_t rows, std::int64_t groups, std::int64_t size) {
  const std::int64_t width = groups * groups * size;
  const auto exchanges = row_exchange<To>(size);
  constexpr std::int64_t kGrain = 1 << 15;
  at::parallel_for(
      0, rows, std::max<std::int64_t>(1, kGrain / width),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<To> rounded(std::is_same_v<From, To> ? 0 : static_cast<std::size_t>(width));
        for (std::int64_t row = begin; row < end; ++row) {
          if constexpr (std::is_same_v<From, To>) {
            exchanges(from + row * width, to + row * width, groups, size);
          } else {
            at::vec::convert(from + row * width, rounded.data(), width);
            exchanges(rounded.data(), to + row * width, groups, size);
          }
        }
      });
}

// Rows of features in the order of exchange_groups(), converted to `type`.
at::Tensor exchanged(const at::Tensor& rows, std::int64_t groups, at::ScalarType type) {
  const std::int64_t size = rows.size(1) / groups / groups;
  if (rows.is_cuda()) {
    const at::Tensor turned = rows.unflatten(1, {groups, groups, -1}).transpose(1, 2);
    return turned.to(type).contiguous().view_as(rows);
  }
  const at::Tensor from = rows.contiguous();
  const at::Tensor to = at::empty_like(from, from.options().dtype(type));
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, from.scalar_type(), "exchange_groups", [&] {
    const auto* const source = from.const_data_ptr<scalar_t>();
    if (type == at::kBFloat16) {
      exchange(source, to.mutable_data_ptr<at::BFloat16>(), from.size(0), groups, size);
    } else {
      exchange(source, to.mutable_data_ptr<scalar_t>(), from.size(0), groups, size);
    }
  });
  return to;
}

std::vector<std::int64_t> with_last(const at::Tensor& input, std::int64_t width) {
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = width;
  return sizes;
}

class GroupedLinear : public torch::autograd::Function<GroupedLinear> {
 public:
  static at::Tensor forward(
      AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
      const std::optional<at::Tensor>& bias, std::int64_t groups, at::ScalarType type) {
    const at::Tensor x = rows_of(input, type);
    const at::Tensor w = weight.to(type);
    context->save_for_backward({x, w, weight, bias.value_or(at::Tensor())});
    context->saved_data["sizes"] = input.sizes();
    context->saved_data["type"] = input.scalar_type();
    context->saved_data["groups"] = groups;
    return at::_unsafe_view(
        products(x, w, true, groups, bias.value_or(at::Tensor())), with_last(input, w.size(0)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    const std::int64_t groups = context->saved_data["groups"].toInt();
    at::Tensor dx, dw, db;
    const at::Tensor dy = rows_of(gradients[0], w.scalar_type());
    if (context->needs_input_grad(0)) {
      dx = products(dy, w, false, groups)
               .view(context->saved_data["sizes"].toIntVector())
               .to(context->saved_data["type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      dw = weight_gradient(saved[2], dy, x, groups);
    }
    if (saved[3].defined() && context->needs_input_grad(2)) {
      db = bias_gradient(saved[3], gradients[0], dy);
    }
    return {dx, dw, db, {}, {}};
  }
};

class FactoredLinear : public torch::autograd::Function<FactoredLinear> {
 public:
  static at::Tensor forward(
      AutogradContext* context, const at::Tensor& input, const at::Tensor& inner,
      const at::Tensor& outer, const std::optional<at::Tensor>& bias,
      const std::optional<at::Tensor>& rest, double scale, std::int64_t grid, at::ScalarType type) {
    const at::Tensor x = rows_of(input, type);
    const at::Tensor w = inner.to(type);
    const at::Tensor v = outer.to(type);
    const at::Tensor r = rest ? rest->to(type) : at::Tensor();
    const at::Tensor z = between(products(x, w, true, grid), scale, grid, type);
    // Tensors that only the gradient of a frozen factor would need are not kept.
    context->save_for_backward(
        {inner.requires_grad() ? x : at::Tensor(), w, outer.requires_grad() ? z : at::Tensor(), v,
         r, inner, outer, bias.value_or(at::Tensor())});
    context->saved_data["sizes"] = input.sizes();
    context->saved_data["type"] = input.scalar_type();
    context->saved_data["scale"] = scale;
    context->saved_data["grid"] = grid;
    const at::Tensor start = bias.value_or(at::Tensor());
    at::Tensor y;
    if (rest) {
      y = products(x, r, true, 1, start);
      add_products(z, v, true, grid, y);
    } else {
      y = products(z, v, true, grid, start);
    }
    return at::_unsafe_view(y, with_last(input, v.size(0)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& w = saved[1];
    const at::Tensor& z = saved[2];
    const at::Tensor& v = saved[3];
    const at::Tensor& r = saved[4];
    const std::int64_t grid = context->saved_data["grid"].toInt();
    const at::ScalarType type = w.scalar_type();
    at::Tensor dx, dw, dv, db;
    const at::Tensor dy = rows_of(gradients[0], type);
    if (context->needs_input_grad(2)) {
      dv = weight_gradient(saved[6], dy, z, grid);
    }
    if (context->needs_input_grad(0) || context->needs_input_grad(1)) {
      const at::Tensor dz = between(
          products(dy, v, false, grid), context->saved_data["scale"].toDouble(), grid, type);
      if (context->needs_input_grad(1)) {
        dw = weight_gradient(saved[5], dz, x, grid);
      }
      if (context->needs_input_grad(0)) {
        dx = products(r.defined() ? dy : dz, r.defined() ? r : w, false, r.defined() ? 1 : grid);
        if (r.defined()) {
          add_products(dz, w, false, grid, dx);
        }
        dx = dx.view(context->saved_data["sizes"].toIntVector())
                 .to(context->saved_data["type"].toScalarType());
      }
    }
    if (saved[7].defined() && context->needs_input_grad(3)) {
      db = bias_gradient(saved[7], gradients[0], dy);
    }
    return {dx, dw, dv, db, {}, {}, {}, {}};
  }

 private:
  // Scales the features that one factor passes to the other, in either direction, and brings them
  // into the other factor's order and type.
  static at::Tensor between(
      const at::Tensor& rows, double scale, std::int64_t grid, at::ScalarType type) {
    const at::Tensor scaled = scale == 1 ? rows : rows * scale;
    return grid == 1 ? scaled.to(type) : exchanged(scaled, grid, type);
  }
};

class ExchangeGroups : public torch::autograd::Function<ExchangeGroups> {
 public:
  static at::Tensor forward(
      AutogradContext* context, const at::Tensor& input, std::int64_t groups) {
    context->saved_data["groups"] = groups;
    return applied(input, groups);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {applied(gradients[0], context->saved_data["groups"].toInt()), {}};
  }

 private:
  static at::Tensor applied(const at::Tensor& input, std::int64_t groups) {
    const at::Tensor rows = rows_of(input, input.scalar_type());
    return at::_unsafe_view(exchanged(rows, groups, rows.scalar_type()), input.sizes());
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
  return ExchangeGroups::apply(input, groups);
}

at::Tensor factored_linear(
    const at::Tensor& input, const Factors& factors, const at::Tensor& bias, at::ScalarType type) {
  const auto given = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  return FactoredLinear::apply(
      input, factors.inner, factors.outer, given(bias), given(factors.rest), factors.scale,
      factors.grid, type);
}

}  // namespace abtrain::nn
