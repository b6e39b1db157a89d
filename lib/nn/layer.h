// Layers: the parts that models are built of.
//
// Activations are B x features, or B x C x H x W in channels-last memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nn/weight.h"

namespace abtrain::nn {

// What a layer shows of itself. Names are PyTorch's ("features.0.weight").
class Visitor {
 public:
  virtual ~Visitor() = default;
  // The weight of a Linear or conv layer.
  virtual void weight(const std::string& name, Weight& weight) = 0;
  // A dense parameter; biases and norms do not decay.
  virtual void parameter(
      const std::string& name, at::Tensor& tensor, bool decays) = 0;
  // State that is not trained: running statistics.
  virtual void buffer(const std::string& name, at::Tensor& tensor) = 0;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual at::Tensor forward(const at::Tensor& input, bool training) = 0;
  // `prefix` ends with '.' or is empty.
  virtual void visit(const std::string& prefix, Visitor& visitor);
};

class Linear : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias = true);
  at::Tensor forward(const at::Tensor& input, bool training) override;
  void visit(const std::string& prefix, Visitor& visitor) override;

 private:
  Weight weight_;
  at::Tensor bias_;
};

struct ConvOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

class Conv2d : public Layer {
 public:
  Conv2d(std::int64_t in, std::int64_t out, ConvOptions options);
  at::Tensor forward(const at::Tensor& input, bool training) override;
  void visit(const std::string& prefix, Visitor& visitor) override;

 private:
  ConvOptions options_;
  Weight weight_;
  at::Tensor bias_;
};

// Batch norm over the worker's own batch (momentum 0.1, eps 1e-5); a ReLU that
// follows is applied in place.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels);
  at::Tensor forward(const at::Tensor& input, bool training) override;
  void visit(const std::string& prefix, Visitor& visitor) override;

 private:
  at::Tensor weight_, bias_, mean_, variance_;
};

// A layer without parameters, from a function.
class Function : public Layer {
 public:
  explicit Function(std::function<at::Tensor(const at::Tensor&)> function)
      : function_(std::move(function)) {}
  at::Tensor forward(const at::Tensor& input, bool) override {
    return function_(input);
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> function_;
};

std::unique_ptr<Layer> relu();
std::unique_ptr<Layer> max_pool(std::int64_t size);
std::unique_ptr<Layer> flatten();

// Layers one after another, each with its name.
class Sequential : public Layer {
 public:
  void add(std::string name, std::unique_ptr<Layer> layer);
  at::Tensor forward(const at::Tensor& input, bool training) override;
  void visit(const std::string& prefix, Visitor& visitor) override;

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  std::vector<Entry> entries_;
};

}  // namespace abtrain::nn
