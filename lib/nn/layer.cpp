#include "nn/layer.h"

#include <ATen/ops/flatten.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>

namespace abtrain::nn {

void NamedTensors::weight(const std::string& name, Weight& weight, const Init& init) {
  // A module may have several weights, such as "attn.in_proj_weight": each counts as a layer.
  const std::string layer = name.ends_with(".weight") ? layer_of(name) : name;
  weights.push_back({name, layer, &weight, init, count()});
}

void NamedTensors::parameter(
    const std::string& name, at::Tensor& tensor, bool decays, const Init& init) {
  parameters.push_back({name, &tensor, decays, init, count()});
}

void NamedTensors::buffer(const std::string& name, at::Tensor& tensor, bool is_fixed) {
  buffers.push_back({name, &tensor, is_fixed});
}

std::string layer_of(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind('.'));
}

std::unique_ptr<Layer> relu() {
  return std::make_unique<Function>([](const at::Tensor& x, const Pass&) {
    if (x.is_view()) {  // writing a view in place makes autograd copy its gradient twice
      return at::relu(x);
    }
    at::Tensor y = x;
    return at::relu_(y);
  });
}

std::unique_ptr<Layer> gelu() {
  return std::make_unique<Function>([](const at::Tensor& x, const Pass&) { return at::gelu(x); });
}

std::unique_ptr<Layer> max_pool(std::int64_t size, std::int64_t stride, std::int64_t padding) {
  return std::make_unique<Function>([=](const at::Tensor& x, const Pass&) {
    return at::max_pool2d(
        x, at::IntArrayRef({size, size}), at::IntArrayRef({stride, stride}),
        at::IntArrayRef({padding, padding}));
  });
}

std::unique_ptr<Layer> average_pool() {
  return std::make_unique<Function>([](const at::Tensor& x, const Pass&) {
    return at::mean(x, {2, 3});
  });
}

std::unique_ptr<Layer> flatten() {
  return std::make_unique<Function>(
      [](const at::Tensor& x, const Pass&) { return at::flatten(x, 1); });
}

void Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  layers_.emplace_back(std::move(name), std::move(layer));
}

at::Tensor Sequential::forward(const at::Tensor& input, const Pass& pass) {
  at::Tensor x = input;
  for (const auto& [name, layer] : layers_) {
    x = layer->forward(x, pass);
  }
  return x;
}

void Sequential::list(const std::string& prefix, NamedTensors& tensors) {
  for (const auto& [name, layer] : layers_) {
    layer->list(name.empty() ? prefix : prefix + name + ".", tensors);
  }
}

}  // namespace abtrain::nn
