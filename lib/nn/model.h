// A network with its named weights, parameters and buffers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/layer.h"
#include "nn/model_options.h"

namespace abtrain::nn {

// Input: B x channels x height x width.
struct InputShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

struct NamedWeight {
  std::string name;   // "fc1.weight"
  std::string layer;  // "fc1"
  Weight* weight;
};

struct NamedParameter {
  std::string name;
  at::Tensor* tensor;
  bool decays;
};

struct NamedBuffer {
  std::string name;
  at::Tensor* tensor;
};

// What a family hands over: its layers, and the layers that it keeps dense by
// default (names or globs).
struct Architecture {
  std::unique_ptr<Sequential> layers;
  std::vector<std::string> keep_dense;
};

class Model {
 public:
  // Weights are uninitialised (no memory) until initialise() or a load.
  explicit Model(Architecture architecture);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Logits, B x classes.
  at::Tensor forward(const at::Tensor& images, bool training) {
    return layers_->forward(images, training);
  }

  const std::vector<NamedWeight>& weights() const {
    return weights_;
  }
  const std::vector<NamedParameter>& parameters() const {
    return parameters_;  // dense ones: biases, norms, embeddings
  }
  const std::vector<NamedBuffer>& buffers() const {
    return buffers_;
  }
  // The default of method.keep_dense.
  const std::vector<std::string>& keep_dense() const {
    return keep_dense_;
  }
  // Numbers in the dense model.
  std::int64_t dense_parameters() const;
  // Numbers in the model as it is (factors where factored).
  std::int64_t stored_parameters() const;

  // Fills every weight from (seed, its place in the model). init: kaiming
  // (He normal by fan-out for convolutions; U(-1/sqrt(fan_in), 1/sqrt(fan_in))
  // for Linear and its bias: torchvision's and PyTorch's defaults) or
  // orthogonal (the same, then U V^T of every weight matrix).
  void initialise(const std::string& init, std::uint64_t seed);

  // Moves everything that is there to a device.
  void to(const at::Device& device);

 private:
  std::unique_ptr<Sequential> layers_;
  std::vector<std::string> keep_dense_;
  std::vector<NamedWeight> weights_;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
};

// Throws Error(Config) for an unknown name or a shape that the family cannot
// take.
std::unique_ptr<Model> make_model(
    const ModelOptions& options, const InputShape& shape);
std::vector<std::string> model_names();

// Weights to factorise: all but those that match a name or glob of
// `keep_dense` ("default" stands for the model's own list) and those fixed.
// Throws Error(Config) for a pattern that matches no layer.
std::vector<NamedWeight> factorable_weights(
    const Model& model, const std::vector<std::string>& keep_dense);

}  // namespace abtrain::nn
