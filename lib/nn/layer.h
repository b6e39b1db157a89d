// The layers that models are built from.
//
// Activations are B x features, B x tokens x features, or B x C x H x W in channels-last memory
// layout.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/init.h"
#include "nn/weight.h"

namespace abtrain::nn {

struct Tape;

struct NamedWeight {
  std::string name;   // "fc1.weight"
  std::string layer;  // "fc1"
  Weight* weight;
  Init init;
  int position = 0;  // in layer order, counted over all parameters
};

struct NamedParameter {
  std::string name;
  at::Tensor* tensor;
  bool decays;
  Init init;
  int position = 0;
  bool is_frozen = false;  // not trained (model.frozen)
};

struct NamedBuffer {
  std::string name;
  at::Tensor* tensor;
  bool is_fixed = false;  // never updated, such as the running statistics of a frozen norm
};

// The tensors of a network, listed by its layers with PyTorch's names ("features.0.weight").
struct NamedTensors {
  std::vector<NamedWeight> weights;
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;
  // The number of weights and parameters.
  int count() const {
    return static_cast<int>(weights.size() + parameters.size());
  }

  // The weight of a Linear or conv layer.
  void weight(const std::string& name, Weight& weight, const Init& init);
  // A dense parameter. Biases, norms and embeddings do not decay.
  void parameter(const std::string& name, at::Tensor& tensor, bool decays, const Init& init);
  // State that is not trained, such as running statistics.
  void buffer(const std::string& name, at::Tensor& tensor, bool is_fixed = false);
};

// The layer of a tensor: "fc1" of "fc1.weight".
std::string layer_of(const std::string& tensor);

// The dtype to which the operands of linear maps and convolutions are rounded: kBFloat16, or kFloat
// for no rounding. Parameters, sums, norms and losses stay in fp32. On the CPU, operands are
// rounded only in products of at least `least` multiplications; nullopt: only in products that are
// faster in bf16 even with the casts.
struct Precision {
  at::ScalarType type = at::kFloat;
  std::optional<std::int64_t> least = {};
};

// The settings of a forward pass.
struct Pass {
  bool training = false;
  at::Generator random = {};  // for dropout; needed only if dropout is active
  Tape* tape = nullptr;       // where Linear and conv layers record the pass
  // If above 0, batch norms normalize by the batch even in a pass that does not train, and move
  // their running statistics by this share towards the batch's statistics.
  double statistics_share = 0;
  Precision precision = {};
  // Compute in fp32, only with PyTorch's operators (nn/recording.h).
  bool plain = false;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual at::Tensor forward(const at::Tensor& input, const Pass& pass) = 0;
  // Adds the layer's tensors. `prefix` ends with '.' or is empty.
  virtual void list(const std::string& /*prefix*/, NamedTensors& /*tensors*/) {}
};

// A layer without parameters that applies a function.
class Function : public Layer {
 public:
  using Form = std::function<at::Tensor(const at::Tensor& input, const Pass& pass)>;
  explicit Function(Form function) : function_(std::move(function)) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    return function_(input, pass);
  }

 private:
  Form function_;
};

std::unique_ptr<Layer> relu();  // in place
std::unique_ptr<Layer> gelu();
std::unique_ptr<Layer> max_pool(std::int64_t size, std::int64_t stride, std::int64_t padding = 0);
std::unique_ptr<Layer> average_pool();  // B x C x H x W to B x C
std::unique_ptr<Layer> flatten();

// Layers one after another, each with a name. An empty name adds nothing to the names of the
// layer's tensors.
class Sequential : public Layer {
 public:
  void add(std::string name, std::unique_ptr<Layer> layer);
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;
  void list(const std::string& prefix, NamedTensors& tensors) override;

 protected:
  std::vector<std::pair<std::string, std::unique_ptr<Layer>>> layers_;  // with their names
};

}  // namespace abtrain::nn
