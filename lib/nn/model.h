// A network with its named weights, parameters and buffers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/families.h"
#include "nn/layer.h"
#include "nn/model_options.h"

namespace abtrain::nn {

class Model {
 public:
  // Weights have no memory until initialize() or a load.
  explicit Model(Architecture architecture);

  // Returns logits, B x classes, or of text B x tokens x classes. A model with
  // dropout needs a call of seed_dropout() before it trains. A tape records the
  // pass (nn/tape.h).
  at::Tensor forward(const at::Tensor& inputs, bool training, Tape* tape = nullptr) {
    return architecture_.layers->forward(inputs, {training, generator_, tape, 0, precision_});
  }
  // Sets the precision of all later passes; initially fp32.
  void compute_in(const Precision& precision) {
    precision_ = precision;
  }
  // Takes the running statistics anew from the batches k = 0, 1, ..., one per
  // call: batch norms normalize by the batch, all else is as in an evaluation.
  // Then the statistics are means over the batches 0 .. k of a batch's mean and
  // of its unbiased variance, written in place. Records no gradients.
  void collect_statistics(const at::Tensor& inputs, std::int64_t k);
  // Seeds dropout, on the device that holds the model: all later masks follow
  // from this number.
  void seed_dropout(std::uint64_t seed);
  // The generator that training passes draw from; undefined before
  // seed_dropout().
  const at::Generator& generator() const {
    return generator_;
  }

  const std::vector<NamedWeight>& weights() const {
    return tensors_.weights;
  }
  const std::vector<NamedParameter>& parameters() const {
    return tensors_.parameters;  // dense ones: biases, norms, embeddings
  }
  const std::vector<NamedBuffer>& buffers() const {
    return tensors_.buffers;
  }
  // The default of method.keep_dense.
  const std::vector<std::string>& keep_dense() const {
    return architecture_.keep_dense;
  }
  // Parameter count of the dense model.
  std::int64_t dense_parameters() const;
  // Parameter count of the model as it is stored (factors where factored).
  std::int64_t stored_parameters() const;

  // Torchvision's name for a tensor that the model calls `name` (timm's name).
  TorchvisionName torchvision_name(const std::string& name) const {
    return architecture_.torchvision_name == nullptr ? TorchvisionName{name}
                                                     : architecture_.torchvision_name(name);
  }
  // The widths that `model.widths`, or `hidden` and `channels`, can choose one by one.
  const std::vector<FreeWidth>& widths() const {
    return architecture_.widths;
  }
  const FileForm& file_form() const {
    return architecture_.file;
  }
  // Why the model should not be trained as it is; empty if it can be.
  const std::string& untrainable() const {
    return architecture_.untrainable;
  }
  // Bytes of the largest result of an operator in a forward pass; 0 if that is not known.
  double largest_result(std::int64_t examples) const {
    return architecture_.largest_result == nullptr ? 0 : architecture_.largest_result(examples);
  }

  // Fills every weight with numbers drawn from (seed, its place in the model). init:
  //   kaiming     as its layer says (nn/init.h): torchvision's for resnet, timm's
  //               for vgg and vit
  //   orthogonal  the same, then every weight matrix is replaced by the factor U V^T
  //               of its SVD (linalg/orthogonal.h)
  //   zeros       everything that would be drawn is zero
  // An exported model begins with the values in its file; orthogonal and zeros
  // replace its weights.
  void initialize(InitName init, std::uint64_t seed);
  // Copies all tensors of a model of the same architecture.
  void copy_from(const Model& other);

  // Moves all tensors that are defined to a device.
  void to(const at::Device& device);

  // Those of weights (some undefined), parameters and buffers.
  std::vector<at::Tensor*> tensors() const;

 private:
  // Takes all tensors from the architecture's `initial`.
  void take_initial();

  Architecture architecture_;
  at::Device device_ = at::kCPU;
  at::Generator generator_;
  Precision precision_;
  NamedTensors tensors_;
};

// Whether a name or glob is that of the tensor or of its layer.
bool matches_tensor(const std::string& pattern, const std::string& tensor);

// The layers with a weight, for people: "conv1, fc".
std::string layer_list(const Model& model);

// Throws Error(Config) for an unknown name or a shape that the family cannot
// take.
std::unique_ptr<Model> make_model(const ModelOptions& options, const data::ExampleShape& shape);

// The weights' positions among all parameters, ascending.
std::vector<int> weight_positions(const Model& model);

// The weights to factor, in order: all but fixed ones, those that match a name
// or glob of `keep_dense` ("default" stands for the model's own list) and, of
// the others, the smallest ones that together have at most the share
// `dense_share` of their parameters (of equal ones the first). Throws
// Error(Config) for a pattern that matches no layer, and for a share that takes
// every layer.
std::vector<NamedWeight> factorable_weights(
    const Model& model, const std::vector<std::string>& keep_dense, double dense_share = 0);

}  // namespace abtrain::nn
