#include "nn/layer.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/ones.h>

namespace abtrain::nn {

void Layer::visit(const std::string&, Visitor&) {}

Linear::Linear(std::int64_t in, std::int64_t out, bool bias)
    : weight_({out, in}) {
  if (bias) {
    bias_ = at::zeros({out});
  }
}

at::Tensor Linear::forward(const at::Tensor& input, bool) {
  if (!weight_.is_factored()) {
    return at::linear(input, weight_.dense, bias_);
  }
  if (weight_.product_is_cheaper(input.numel() / input.size(-1))) {
    return at::linear(input, weight_.merged(), bias_);
  }
  return at::linear(at::linear(input, weight_.inner), weight_.outer, bias_);
}

void Linear::visit(const std::string& prefix, Visitor& visitor) {
  visitor.weight(prefix + "weight", weight_);
  if (bias_.defined()) {
    visitor.parameter(prefix + "bias", bias_, false);
  }
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, ConvOptions options)
    : options_(options),
      weight_(
          {out, in / options.groups, options.kernel, options.kernel},
          options.groups > 1) {
  if (options_.bias) {
    bias_ = at::zeros({out});
  }
}

at::Tensor Conv2d::forward(const at::Tensor& input, bool) {
  const auto convolve = [&](const at::Tensor& weight, const at::Tensor& bias) {
    return at::conv2d(
        input,
        weight,
        bias,
        at::IntArrayRef({options_.stride, options_.stride}),
        at::IntArrayRef({options_.padding, options_.padding}),
        at::IntArrayRef({1, 1}),
        options_.groups);
  };
  if (!weight_.is_factored()) {
    return convolve(weight_.dense, bias_);
  }
  const std::int64_t pixels = input.size(0) * input.size(2) * input.size(3) /
      (options_.stride * options_.stride);
  if (weight_.product_is_cheaper(pixels)) {
    return convolve(weight_.merged(), bias_);
  }
  // The outer factor is a 1x1 convolution: in channels-last memory that is a
  // matrix product over the channels.
  const at::Tensor inner = convolve(weight_.inner, {}).permute({0, 2, 3, 1});
  return at::linear(inner, weight_.outer, bias_).permute({0, 3, 1, 2});
}

void Conv2d::visit(const std::string& prefix, Visitor& visitor) {
  visitor.weight(prefix + "weight", weight_);
  if (bias_.defined()) {
    visitor.parameter(prefix + "bias", bias_, false);
  }
}

BatchNorm2d::BatchNorm2d(std::int64_t channels)
    : weight_(at::ones({channels})),
      bias_(at::zeros({channels})),
      mean_(at::zeros({channels})),
      variance_(at::ones({channels})) {}

at::Tensor BatchNorm2d::forward(const at::Tensor& input, bool training) {
  return at::batch_norm(
      input, weight_, bias_, mean_, variance_, training, 0.1, 1e-5, true);
}

void BatchNorm2d::visit(const std::string& prefix, Visitor& visitor) {
  visitor.parameter(prefix + "weight", weight_, false);
  visitor.parameter(prefix + "bias", bias_, false);
  visitor.buffer(prefix + "running_mean", mean_);
  visitor.buffer(prefix + "running_var", variance_);
}

std::unique_ptr<Layer> relu() {
  return std::make_unique<Function>([](const at::Tensor& x) {
    at::Tensor y = x;
    return at::relu_(y);
  });
}

std::unique_ptr<Layer> max_pool(std::int64_t size) {
  return std::make_unique<Function>([size](const at::Tensor& x) {
    return at::max_pool2d(x, {size, size}, {size, size});
  });
}

std::unique_ptr<Layer> flatten() {
  return std::make_unique<Function>(
      [](const at::Tensor& x) { return at::flatten(x, 1); });
}

void Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  entries_.push_back({std::move(name), std::move(layer)});
}

at::Tensor Sequential::forward(const at::Tensor& input, bool training) {
  at::Tensor x = input;
  for (const Entry& entry : entries_) {
    x = entry.layer->forward(x, training);
  }
  return x;
}

void Sequential::visit(const std::string& prefix, Visitor& visitor) {
  for (const Entry& entry : entries_) {
    entry.layer->visit(
        entry.name.empty() ? prefix : prefix + entry.name + ".", visitor);
  }
}

}  // namespace abtrain::nn
