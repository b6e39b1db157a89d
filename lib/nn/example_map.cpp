#include "nn/example_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace abtrain::nn {

namespace {

// Sums are accumulated in at least fp32.
at::Tensor wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

}  // namespace

at::Tensor Placed::in(const at::Tensor& vector) const {
  return vector.as_strided(tensor.sizes(), tensor.strides(), vector.storage_offset() + offset);
}

at::Tensor Placed::in(const at::Tensor& rows, std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> all_sizes = tensor.sizes().vec();
  std::vector<std::int64_t> all_strides = tensor.strides().vec();
  all_sizes.insert(all_sizes.begin(), count);
  all_strides.insert(all_strides.begin(), rows.stride(0));
  return rows.as_strided(
      all_sizes, all_strides, rows.storage_offset() + first * rows.stride(0) + offset);
}

ExampleMap::ExampleMap(
    const LinearMap& map, std::optional<Placed> weight, std::optional<Placed> bias,
    std::int64_t scratch, std::int64_t& budget)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      stride_(map.stride),
      padding_(map.padding),
      scratch_(scratch) {
  ABT_ASSERT(map.gradient->defined(), "the backward pass skipped a map");
  const at::Tensor gradient = wide(*map.gradient);
  if (gradient.dim() == 4) {
    output_sides_ = gradient.sizes().slice(2).vec();
    gradient_ = gradient.permute({0, 2, 3, 1}).contiguous().flatten(1, 2);
  } else {
    gradient_ = gradient.contiguous().view({map.examples, -1, gradient.size(1)});
  }
  if (!weight_) {
    return;
  }
  const at::Tensor input = wide(map.input);
  is_conv_ = gradient.dim() == 4;
  has_equal_pixels_ = !is_conv_ && weight_->tensor.dim() == 4;
  input_ = is_conv_ ? input.contiguous(at::MemoryFormat::ChannelsLast)
                    : input.contiguous().view({map.examples, -1, input.size(-1)});
  way_ = choose(budget);
  if (way_ == Way::Kept) {
    kept_ = built();
    budget -= bytes_to_keep();
  }
}

// Compares the multiplications that each way takes, divided by B. Kept
// gradients save the two passes of outputs_of and add_to_weight.
ExampleMap::Way ExampleMap::choose(std::int64_t budget) const {
  const auto b = static_cast<double>(examples());
  const auto t = static_cast<double>(positions());
  const auto o = static_cast<double>(outputs());
  const auto k = static_cast<double>(input_width());
  const bool can_keep = bytes_to_keep() <= budget;
  const auto element = static_cast<double>(gradient_.element_size());
  const double bytes = element * b * t * (2 * b * t + (is_conv_ ? k : 0));
  const bool fits = bytes <= static_cast<double>(scratch_);
  const double passes = can_keep ? 2 * t * k * o : 0;
  if (positions() == 1 || (fits && b * t * t * (k + o) + passes < (t + b) * k * o)) {
    return Way::Positions;
  }
  return can_keep ? Way::Kept : Way::Channels;
}

void ExampleMap::add_products(const at::Tensor& sums) const {
  if (bias_) {
    const at::Tensor of_bias = gradient_.sum(1);
    sums.addmm_(of_bias, of_bias.t());
  }
  if (!weight_) {
    return;
  }
  if (way_ == Way::Positions) {
    sums.add_(weight_products_by_positions(), has_equal_pixels_ ? pixels() : 1);
  } else if (way_ == Way::Kept) {
    const at::Tensor rows = kept_.flatten(1);
    sums.addmm_(rows, rows.t());
  } else {
    add_weight_products_by_channels(sums);
  }
}

void ExampleMap::add_products(const at::Tensor& sums, const at::Tensor& vector) const {
  if (bias_) {
    sums.addmv_(gradient_.sum(1), bias_->in(vector));
  }
  if (!weight_) {
    return;
  }
  const at::Tensor weight = weight_->in(vector);
  if (way_ == Way::Kept) {
    sums.addmv_(kept_.flatten(1), weight.flatten());
  } else {
    sums.add_((outputs_of(weight) * gradient_).sum({1, 2}));
  }
}

void ExampleMap::add(const at::Tensor& vector, const at::Tensor& coefficients) const {
  if (bias_) {
    bias_->in(vector).addmv_(gradient_.sum(1).t(), coefficients);
  }
  if (!weight_) {
    return;
  }
  const at::Tensor weight = weight_->in(vector);
  if (way_ == Way::Kept) {
    const at::Tensor sum = at::matmul(coefficients, kept_.flatten(1));
    weight.add_(as_weight(sum.view({outputs(), input_width()})));
  } else {
    add_to_weight(weight, gradient_ * coefficients.view({-1, 1, 1}));
  }
}

void ExampleMap::differences(const at::Tensor& rows) const {
  const std::int64_t pairs = examples() / 2;
  const at::Tensor gradients = gradient_.clone().view({pairs, 2, positions(), outputs()});
  gradients.select(1, 1).neg_();
  if (bias_) {
    bias_->in(rows, 0, pairs).copy_(gradients.sum({1, 2}));
  }
  if (!weight_) {
    return;
  }
  if (way_ == Way::Kept) {
    const at::Tensor both = kept_.unflatten(0, {pairs, 2});
    weight_->in(rows, 0, pairs).copy_(as_weight(both.select(1, 0) - both.select(1, 1)));
    return;
  }
  const at::Tensor columns = gradients.flatten(1, 2).transpose(1, 2);
  const std::int64_t width = input_width();
  const std::int64_t step = pieces(width * (2 * positions() + outputs()));
  for (std::int64_t k = 0; k < pairs; k += step) {
    const std::int64_t count = std::min(step, pairs - k);
    const at::Tensor inputs =
        unfolded(input_.narrow(0, 2 * k, 2 * count)).reshape({count, 2 * positions(), width});
    at::Tensor to = weight_->in(rows, k, count);
    if (is_conv_ || has_equal_pixels_) {
      to.copy_(as_weight(at::bmm(columns.narrow(0, k, count), inputs)));
    } else {
      at::bmm_out(to, columns.narrow(0, k, count), inputs);
    }
  }
}

// B x T x K, for the input of some examples or of some channels.
at::Tensor ExampleMap::unfolded(const at::Tensor& input) const {
  if (!is_conv_) {
    return input;
  }
  at::Tensor x = input.contiguous();  // gives long runs even for few channels
  if (padding_ > 0) {
    x = at::constant_pad_nd(x, {padding_, padding_, padding_, padding_});
  }
  return x.unfold(2, weight_->tensor.size(2), stride_)
      .unfold(3, weight_->tensor.size(3), stride_)
      .permute({0, 1, 4, 5, 2, 3})
      .reshape({x.size(0), x.size(1) * pixels(), positions()})
      .transpose(1, 2);
}

// (... x) O x K to the weight's sizes, or to a tensor that broadcasts to them.
at::Tensor ExampleMap::as_weight(const at::Tensor& matrix) const {
  if (has_equal_pixels_) {
    return matrix.unsqueeze(-1).unsqueeze(-1);
  }
  if (!is_conv_) {
    return matrix;
  }
  return matrix.unflatten(-1, weight_->tensor.sizes().slice(1));
}

// The weight's gradients for all examples, B x O x K.
at::Tensor ExampleMap::built() const {
  const at::Tensor columns = gradient_.transpose(1, 2);
  const std::int64_t width = input_width();
  at::Tensor all = at::empty({examples(), outputs(), width}, options());
  const std::int64_t step = pieces(width * positions());
  for (std::int64_t i = 0; i < examples(); i += step) {
    const std::int64_t count = std::min(step, examples() - i);
    at::Tensor to = all.narrow(0, i, count);
    at::bmm_out(to, columns.narrow(0, i, count), unfolded(input_.narrow(0, i, count)));
  }
  return all;
}

at::Tensor ExampleMap::weight_products_by_positions() const {
  const at::Tensor inputs = unfolded(input_).flatten(0, 1);
  const at::Tensor gradients = gradient_.flatten(0, 1);
  const at::Tensor all = at::mm(inputs, inputs.t()).mul_(at::mm(gradients, gradients.t()));
  return all.view({examples(), positions(), examples(), positions()}).sum({1, 3});
}

void ExampleMap::add_weight_products_by_channels(const at::Tensor& sums) const {
  const at::Tensor columns = gradient_.transpose(1, 2);
  const std::int64_t dim = is_conv_ ? 1 : 2;
  const std::int64_t step = pieces(examples() * pixels() * (positions() + outputs()));
  for (std::int64_t c = 0; c < input_.size(dim); c += step) {
    const std::int64_t count = std::min(step, input_.size(dim) - c);
    const at::Tensor rows = at::bmm(columns, unfolded(input_.narrow(dim, c, count))).flatten(1);
    sums.addmm_(rows, rows.t());
  }
}

// The map's outputs with this weight and no bias, B x T x O.
at::Tensor ExampleMap::outputs_of(const at::Tensor& weight) const {
  if (is_conv_) {
    return at::conv2d(
               input_, weight, {}, at::IntArrayRef({stride_, stride_}),
               at::IntArrayRef({padding_, padding_}))
        .permute({0, 2, 3, 1})
        .flatten(1, 2);
  }
  return at::matmul(input_, (has_equal_pixels_ ? weight.sum({2, 3}) : weight).t());
}

// Adds to `weight` its gradient for a batch with output gradients `scaled`.
void ExampleMap::add_to_weight(const at::Tensor& weight, const at::Tensor& scaled) const {
  if (is_conv_) {
    weight.add_(std::get<1>(at::convolution_backward(
        scaled.view({examples(), output_sides_[0], output_sides_[1], -1}).permute({0, 3, 1, 2}),
        input_, weight, {}, at::IntArrayRef({stride_, stride_}),
        at::IntArrayRef({padding_, padding_}), at::IntArrayRef({1, 1}), false,
        at::IntArrayRef({0, 0}), 1, {false, true, false})));
    return;
  }
  const at::Tensor rows = scaled.flatten(0, 1).t();
  const at::Tensor inputs = input_.flatten(0, 1);
  if (has_equal_pixels_) {
    weight.add_(as_weight(at::mm(rows, inputs)));
  } else {
    weight.addmm_(rows, inputs);
  }
}

}  // namespace abtrain::nn
