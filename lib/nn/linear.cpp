#include "nn/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "nn/grouped_linear.h"
#include "nn/tape.h"
#include "ops/bf16_product.h"

namespace abtrain::nn {

at::ScalarType product_type(
    const Precision& precision, const at::Tensor& weight, std::int64_t multiplications, bool thin) {
  const bool rounds =
      precision.type != at::kFloat &&
      (weight.is_cuda() ||
       multiplications >= (precision.least ? *precision.least : ops::bf16_product_pays_from(thin)));
  return rounds ? precision.type : weight.scalar_type();
}

namespace {

// product_type() for a pass over `positions` (Weight::product_is_cheaper()).
at::ScalarType type_of(
    const Weight& weight, const Precision& precision, std::int64_t positions, bool thin) {
  const bool is_whole = !weight.is_factored() || weight.rest.defined();
  return product_type(
      precision, weight.is_factored() ? weight.outer : weight.dense,
      positions * (is_whole ? weight.numel()
                            : (weight.inner.numel() + weight.outer.numel()) / weight.grid()),
      thin);
}

// Whether a pass applies the weight as one matrix. With a tape or in a recording, the factors are
// always applied in turn.
bool applies_whole(const Weight& weight, const Pass& pass, std::int64_t positions) {
  return !weight.is_factored() || (pass.tape == nullptr && !pass.plain && !weight.rest.defined() &&
                                   weight.product_is_cheaper(positions));
}

// grouped_linear() and exchange_groups(), with PyTorch's operators only.
at::Tensor plain_linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
    std::int64_t groups) {
  if (groups == 1) {
    return at::linear(input, weight, bias);
  }
  const at::Tensor y = at::einsum(
                           "...gi,goi->...go",
                           {input.unflatten(-1, {groups, -1}), weight.unflatten(0, {groups, -1})})
                           .flatten(-2);
  return bias.defined() ? y + bias : y;
}
at::Tensor plain_exchange(const at::Tensor& input, std::int64_t dimension, std::int64_t groups) {
  return groups == 1 ? input
                     : input.unflatten(dimension, {groups, groups, -1})
                           .transpose(dimension, dimension + 1)
                           .flatten(dimension, dimension + 2);
}

at::Tensor convolve(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const Window& window,
    at::ScalarType type, const Pass& pass) {
  Tape* const tape = pass.tape;
  at::Tensor x = cast(input, type);
  const std::int64_t kernel_height = weight.size(2);
  const std::int64_t kernel_width = weight.size(3);
  if (window.grows_input) {
    const std::int64_t height = input.size(2);
    const std::int64_t width = input.size(3);
    if (height == 1 && width == 1) {
      // All pixels of the enlarged image are equal, so the kernel's sum over its pixels gives the
      // same result, with 1/49 of the work for a kernel of 7 x 7.
      const at::Tensor pixels = x.flatten(1);
      const at::Tensor sum = weight.sum({2, 3});
      const at::Tensor output = pass.plain ? plain_linear(pixels, sum, bias, window.groups)
                                : window.groups > 1
                                    ? grouped_linear(pixels, sum, bias, window.groups, type)
                                    : at::linear(pixels, cast(sum, type), cast(bias, type));
      if (tape != nullptr) {
        tape->record(
            {.weight = weight, .bias = bias, .input = pixels, .groups = window.groups}, output);
      }
      return cast(output, type).unsqueeze(2).unsqueeze(3);
    }
    if (height < kernel_height || width < kernel_width) {
      x = at::adaptive_avg_pool2d(
          x, {std::max(height, kernel_height), std::max(width, kernel_width)});
    }
  }
  std::array<std::int64_t, 2> stride = window.stride;
  if (kernel_height == 1 && kernel_width == 1 && window.padding == std::array<std::int64_t, 2>{} &&
      (stride[0] > 1 || stride[1] > 1)) {
    // A strided 1x1 convolution reads only these pixels, so take them beforehand: without AVX-512,
    // LibTorch 2.11's oneDNN writes out of bounds in its weight gradient (channels-last, few
    // channels).
    x = x.slice(2, 0, std::nullopt, stride[0])
            .slice(3, 0, std::nullopt, stride[1])
            .contiguous(x.suggest_memory_format());
    stride = {1, 1};
  }
  const at::Tensor output = at::conv2d(
      x, cast(weight, type), cast(bias, type), at::IntArrayRef(stride),
      at::IntArrayRef(window.padding), at::IntArrayRef(window.dilation), window.groups);
  if (tape != nullptr) {
    tape->record(
        {.weight = weight,
         .bias = bias,
         .input = x,
         .stride = stride[0],
         .padding = window.padding[0],
         .groups = window.groups},
        output);
  }
  return output;
}

// Applies the factors of a convolution one after another.
at::Tensor convolve_factors(
    const Weight& weight, const at::Tensor& bias, const at::Tensor& input, const Window& window,
    at::ScalarType type, const Pass& pass) {
  Tape* const tape = pass.tape;
  const std::int64_t grid = weight.grid();
  Window inside = window;
  inside.groups = grid;
  if (pass.plain) {
    return at::conv2d(
        plain_exchange(convolve(input, weight.inner, {}, inside, type, pass), 1, grid),
        weight.outer.unsqueeze(2).unsqueeze(3), bias, at::IntArrayRef({1, 1}),
        at::IntArrayRef({0, 0}), at::IntArrayRef({1, 1}), grid);
  }
  // The outer factor is a 1x1 convolution; in channels-last memory, that is a matrix product over
  // the channels.
  at::Tensor inner = convolve(input, weight.inner, {}, inside, type, pass).permute({0, 2, 3, 1});
  if (grid > 1) {
    inner = exchange_groups(inner, grid);
  }
  if (tape == nullptr && type == at::kBFloat16 && inner.is_cpu()) {
    // The result must be bf16, as a convolution's, but on the CPU linear() would return fp32.
    const at::Tensor outer = cast(weight.outer, type);
    if (grid > 1) {
      return at::conv2d(
          inner.permute({0, 3, 1, 2}), outer.unsqueeze(2).unsqueeze(3), cast(bias, type),
          at::IntArrayRef({1, 1}), at::IntArrayRef({0, 0}), at::IntArrayRef({1, 1}), grid);
    }
    return at::linear(inner, outer, cast(bias, type)).permute({0, 3, 1, 2});
  }
  return linear(inner, weight.outer, bias, type, tape, grid).permute({0, 3, 1, 2});
}

}  // namespace

at::Tensor apply_linear(
    const Weight& weight, const at::Tensor& bias, const at::Tensor& input, const Pass& pass) {
  const std::int64_t rows = input.numel() / input.size(-1);
  constexpr std::int64_t kThin = 16;
  const bool thin = weight.is_factored() && !weight.rest.defined() && weight.rank() < kThin;
  const at::ScalarType type = type_of(weight, pass.precision, rows, thin);
  if (applies_whole(weight, pass, rows)) {
    return linear(input, weight.merged(), bias, type, pass.tape);
  }
  const std::int64_t grid = weight.grid();
  if (pass.plain) {
    const at::Tensor inner =
        plain_exchange(plain_linear(input, weight.inner, {}, grid), input.dim() - 1, grid);
    return weight.rest.defined() ? at::add(
                                       at::linear(input, weight.rest, bias),
                                       plain_linear(inner, weight.outer, {}, grid), weight.scale)
                                 : plain_linear(inner, weight.outer, bias, grid);
  }
  if ((grid > 1 || weight.rest.defined()) && pass.tape == nullptr) {
    return factored_linear(
        input, {weight.inner, weight.outer, weight.rest, weight.scale, grid}, bias, type);
  }
  at::Tensor inner = linear(input, weight.inner, {}, type, pass.tape, grid);
  if (grid > 1) {
    inner = exchange_groups(inner, grid);
  }
  return linear(inner, weight.outer, bias, type, pass.tape, grid);
}

at::Tensor apply_conv(
    const Weight& weight, const at::Tensor& bias, const at::Tensor& input, const Window& window,
    const Pass& pass) {
  const auto output_side = [&](std::size_t i) {
    const std::int64_t kernel = weight.sizes()[i + 2];
    const std::int64_t side = input.size(static_cast<std::int64_t>(i) + 2);
    return ((window.grows_input ? std::max(side, kernel) : side) + 2 * window.padding[i] -
            window.dilation[i] * (kernel - 1) - 1) /
               window.stride[i] +
           1;
  };
  const std::int64_t pixels = input.size(0) * output_side(0) * output_side(1);
  constexpr std::int64_t kPaysFrom = 4'000'000;  // multiplications, with oneDNN
  const Precision precision = {pass.precision.type, pass.precision.least.value_or(kPaysFrom)};
  const at::ScalarType type = type_of(weight, precision, pixels, false);
  if (applies_whole(weight, pass, pixels)) {
    return convolve(input, weight.merged(), bias, window, type, pass);
  }
  if (!weight.rest.defined()) {
    return convolve_factors(weight, bias, input, window, type, pass);
  }
  const at::Tensor y = convolve(input, weight.rest, bias, window, type, pass);
  return at::add(y, convolve_factors(weight, {}, input, window, type, pass), weight.scale);
}

namespace {

class WeightLayer : public Layer {
 public:
  // If a window is given, the layer is a convolution.
  WeightLayer(
      Weight weight, bool bias, const LayerInit& init, const std::optional<Window>& window = {})
      : weight_(std::move(weight)), init_(init), window_(window) {
    if (bias) {
      bias_ = at::zeros({weight_.out_features()});
    }
  }

  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    return window_ ? apply_conv(weight_, bias_, input, *window_, pass)
                   : apply_linear(weight_, bias_, input, pass);
  }
  void list(const std::string& prefix, NamedTensors& tensors) override {
    tensors.weight(prefix + "weight", weight_, init_.weight);
    if (bias_.defined()) {
      tensors.parameter(prefix + "bias", bias_, false, init_.bias);
    }
  }

 private:
  Weight weight_;
  at::Tensor bias_;
  LayerInit init_;
  std::optional<Window> window_;
};

}  // namespace

std::unique_ptr<Layer> linear(
    std::int64_t in, std::int64_t out, bool bias, std::optional<LayerInit> init) {
  return std::make_unique<WeightLayer>(
      Weight({out, in}), bias, init.value_or(uniform_by_fan_in(in)));
}

std::unique_ptr<Layer> conv2d(std::int64_t in, std::int64_t out, const ConvOptions& options) {
  const Window window{
      .stride = {options.stride, options.stride},
      .padding = {options.padding, options.padding},
      .groups = options.groups,
      .grows_input = options.grows_input};
  return std::make_unique<WeightLayer>(
      Weight({out, in / options.groups, options.kernel, options.kernel}, options.groups > 1),
      options.bias, options.init.value_or(he_normal(out * options.kernel * options.kernel)),
      window);
}

}  // namespace abtrain::nn
