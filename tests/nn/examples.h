// Models for tests of single examples' gradients, and those gradients by
// backward passes of each example alone.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/example_gradients.h"
#include "nn/model.h"

namespace abtrain::testing {

// The model's tensors that require gradients, one after another.
inline std::vector<nn::Placed> placed(nn::Model& model) {
  std::vector<nn::Placed> result;
  std::int64_t offset = 5;  // numbers of nobody's
  const auto place = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.requires_grad()) {
      result.push_back({tensor, offset});
      offset += tensor.numel() + 3;
    }
  };
  for (const nn::NamedWeight& w : model.weights()) {
    place(w.weight->dense);
    place(w.weight->inner);
    place(w.weight->outer);
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    place(*p.tensor);
  }
  return result;
}

inline std::int64_t numel(const std::vector<nn::Placed>& trained) {
  return trained.back().offset + trained.back().tensor.numel() + 2;
}

enum class Trained { Inner, Outer };

// In `type`, trained: of factored weights one factor.
inline void prepare(nn::Model& model, at::ScalarType type, Trained factor) {
  const auto set = [&](at::Tensor& tensor, bool trained) {
    if (tensor.defined()) {
      tensor = tensor.detach().to(type).set_requires_grad(trained);
    }
  };
  for (const nn::NamedWeight& w : model.weights()) {
    set(w.weight->dense, true);
    set(w.weight->inner, factor == Trained::Inner);
    set(w.weight->outer, factor == Trained::Outer);
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    set(*p.tensor, true);
    // Fresh biases are zero.
    p.tensor->detach().copy_(at::randn(p.tensor->sizes()) * 0.1);
  }
}

inline at::Tensor loss_of(
    nn::Model& model, const at::Tensor& images, const at::Tensor& labels,
    nn::Tape* tape = nullptr) {
  const at::Tensor logits = model.forward(images, true, tape);
  return at::cross_entropy_loss(
      logits.scalar_type() == at::kBFloat16 ? logits.to(at::kFloat) : logits, labels);
}

// Row i: example i's gradient of the mean loss, by a pass of its own.
inline at::Tensor reference(
    nn::Model& model, const std::vector<nn::Placed>& trained, const at::Tensor& images,
    const at::Tensor& labels) {
  const std::int64_t batch = images.size(0);
  const at::Tensor rows =
      at::zeros({batch, numel(trained)}, trained.front().tensor.options().requires_grad(false));
  for (std::int64_t i = 0; i < batch; ++i) {
    for (const nn::Placed& p : trained) {
      p.tensor.mutable_grad().reset();
    }
    (loss_of(model, images.narrow(0, i, 1), labels.narrow(0, i, 1)) / static_cast<double>(batch))
        .backward();
    for (const nn::Placed& p : trained) {
      const at::Tensor row = rows[i];
      row.as_strided(p.tensor.sizes(), p.tensor.strides(), row.storage_offset() + p.offset)
          .copy_(p.tensor.grad());
    }
  }
  return rows;
}

inline std::unique_ptr<nn::Model> family(
    const std::string& name, const data::ExampleShape& shape, double width = 1) {
  nn::ModelOptions options;
  options.name = name;
  options.width = width;
  options.hidden = {9, 7};
  options.channels = {4, 6};
  auto model = nn::make_model(options, shape);
  model->initialize(nn::InitName::Kaiming, 1);
  return model;
}

using Layers = std::vector<std::pair<std::string, std::unique_ptr<nn::Layer>>>;

inline std::unique_ptr<nn::Model> of_layers(Layers layers) {
  auto all = std::make_unique<nn::Sequential>();
  for (auto& [name, layer] : layers) {
    all->add(name, std::move(layer));
  }
  auto model = std::make_unique<nn::Model>(nn::Architecture{std::move(all), {}});
  model->initialize(nn::InitName::Kaiming, 1);
  return model;
}

}  // namespace abtrain::testing
