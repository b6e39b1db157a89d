#include "nn/linear.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "nn/tape.h"

namespace abtrain::nn {

at::ScalarType product_type(
    const Precision& precision, const at::Tensor& weight, std::int64_t multiplications) {
  const bool pays = weight.is_cuda() || multiplications >= precision.least;
  return precision.type != at::kFloat && pays ? precision.type : weight.scalar_type();
}

WeightLayer::WeightLayer(Weight weight, bool bias, const LayerInit& init)
    : weight_(std::move(weight)), init_(init) {
  if (bias) {
    bias_ = at::zeros({weight_.out_features()});
  }
}

void WeightLayer::visit(const std::string& prefix, Visitor& visitor) {
  visitor.weight(prefix + "weight", weight_, init_.weight);
  if (bias_.defined()) {
    visitor.parameter(prefix + "bias", bias_, false, init_.bias);
  }
}

Linear::Linear(std::int64_t in, std::int64_t out, bool bias, std::optional<LayerInit> init)
    : WeightLayer(Weight({out, in}), bias, init.value_or(uniform_by_fan_in(in))) {}

at::ScalarType WeightLayer::type_of(const Pass& pass, std::int64_t positions) const {
  return product_type(
      pass.precision, weight_.is_factored() ? weight_.outer : weight_.dense,
      positions * (weight_.is_factored() ? weight_.inner.numel() + weight_.outer.numel()
                                         : weight_.dense.numel()));
}

at::Tensor Linear::forward(const at::Tensor& input, const Pass& pass) {
  const std::int64_t rows = input.numel() / input.size(-1);
  // The casts around a thinner factor take as long as its products.
  constexpr std::int64_t kThin = 16;
  const bool thin =
      weight_.is_factored() && weight_.outer.is_cpu() && weight_.inner.size(0) < kThin;
  const at::ScalarType type = thin ? weight_.outer.scalar_type() : type_of(pass, rows);
  if (!weight_.is_factored()) {
    return linear(input, weight_.dense, bias_, type, pass.tape);
  }
  if (pass.tape == nullptr && weight_.product_is_cheaper(rows)) {
    return linear(input, weight_.merged(), bias_, type, nullptr);
  }
  return linear(
      linear(input, weight_.inner, {}, type, pass.tape), weight_.outer, bias_, type, pass.tape);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, ConvOptions options)
    : WeightLayer(
          Weight({out, in / options.groups, options.kernel, options.kernel}, options.groups > 1),
          options.bias, options.init.value_or(he_normal(out * options.kernel * options.kernel))),
      options_(options) {}

std::int64_t Conv2d::output_side(std::int64_t side) const {
  if (options_.grows_input) {
    side = std::max(side, options_.kernel);
  }
  return (side + 2 * options_.padding - options_.kernel) / options_.stride + 1;
}

at::Tensor Conv2d::convolve(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type,
    Tape* tape) const {
  at::Tensor x = cast(input, type);
  if (options_.grows_input) {
    const std::int64_t height = input.size(2);
    const std::int64_t width = input.size(3);
    if (height == 1 && width == 1) {
      // All pixels of the enlarged image are equal, so the kernel's sum gives
      // the same result, with 1/49 of the work for a kernel of 7 x 7.
      const at::Tensor pixels = x.flatten(1);
      const at::Tensor output =
          at::linear(pixels, cast(weight.sum({2, 3}), type), cast(bias, type));
      if (tape != nullptr) {
        tape->record({.weight = weight, .bias = bias, .input = pixels}, output);
      }
      return output.unsqueeze(2).unsqueeze(3);
    }
    if (height < options_.kernel || width < options_.kernel) {
      x = at::adaptive_avg_pool2d(
          x, {std::max(height, options_.kernel), std::max(width, options_.kernel)});
    }
  }
  std::int64_t stride = options_.stride;
  if (options_.kernel == 1 && options_.padding == 0 && stride > 1) {
    // Only these pixels are read. Without AVX-512, LibTorch 2.11's oneDNN writes
    // out of bounds in the weight gradient of a strided 1x1 convolution
    // (channels-last, few channels).
    x = x.slice(2, 0, std::nullopt, stride)
            .slice(3, 0, std::nullopt, stride)
            .contiguous(x.suggest_memory_format());
    stride = 1;
  }
  const at::Tensor output = at::conv2d(
      x, cast(weight, type), cast(bias, type), at::IntArrayRef({stride, stride}),
      at::IntArrayRef({options_.padding, options_.padding}), at::IntArrayRef({1, 1}),
      options_.groups);
  if (tape != nullptr && options_.groups == 1) {
    tape->record(
        {.weight = weight, .bias = bias, .input = x, .stride = stride, .padding = options_.padding},
        output);
  }
  return output;
}

at::Tensor Conv2d::forward(const at::Tensor& input, const Pass& pass) {
  const std::int64_t pixels =
      input.size(0) * output_side(input.size(2)) * output_side(input.size(3));
  const at::ScalarType type = type_of(pass, pixels);
  if (!weight_.is_factored()) {
    return convolve(input, weight_.dense, bias_, type, pass.tape);
  }
  if (pass.tape == nullptr && weight_.product_is_cheaper(pixels)) {
    return convolve(input, weight_.merged(), bias_, type, nullptr);
  }
  // The outer factor is a 1x1 convolution, which in channels-last memory is a
  // matrix product over the channels.
  const at::Tensor inner =
      convolve(input, weight_.inner, {}, type, pass.tape).permute({0, 2, 3, 1});
  if (pass.tape == nullptr && type == at::kBFloat16 && inner.is_cpu()) {
    // A convolution passes on bf16; on the CPU, linear() would return fp32.
    return at::linear(inner, cast(weight_.outer, type), cast(bias_, type)).permute({0, 3, 1, 2});
  }
  return linear(inner, weight_.outer, bias_, type, pass.tape).permute({0, 3, 1, 2});
}

}  // namespace abtrain::nn
