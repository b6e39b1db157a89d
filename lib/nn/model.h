// A network with its named weights, parameters and buffers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "nn/families.h"
#include "nn/layer.h"
#include "nn/model_options.h"

namespace abtrain::nn {

// Tensors that a model and its copies share, so that frozen tensors are in memory once.
class SharedTensors {
 public:
  // Returns the tensor of this name on this device; the first call makes it.
  at::Tensor get(
      const std::string& name, const at::Device& device, const std::function<at::Tensor()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, at::Tensor> tensors_;
};

class Model {
 public:
  // Weights have no memory until initialize() or a load.
  explicit Model(Architecture architecture);

  // Returns logits, B x classes, or B x tokens x classes for text. A model with dropout needs a
  // call of seed_dropout() before it trains. A tape records the pass (nn/tape.h).
  at::Tensor forward(const at::Tensor& inputs, bool training, Tape* tape = nullptr) {
    return architecture_.layers->forward(inputs, {training, generator_, tape, 0, precision_});
  }
  // An evaluation in fp32 with PyTorch's operators only (nn/recording.h).
  at::Tensor forward_plain(const at::Tensor& inputs) {
    return architecture_.layers->forward(inputs, {.plain = true});
  }
  // Sets the precision of all later passes; initially fp32.
  void compute_in(const Precision& precision) {
    precision_ = precision;
  }
  // Recomputes the running statistics from batches, one per call, numbered k = 0, 1, ... Batch
  // norms that are not frozen normalize by the batch; everything else is as in an evaluation.
  // Afterwards the statistics, written in place, are the averages of the means and of the unbiased
  // variances of batches 0 .. k. Records no gradients.
  void collect_statistics(const at::Tensor& inputs, std::int64_t k);
  const Precision& precision() const {
    return precision_;
  }
  // Seeds dropout on the device that holds the model; all later masks follow from this number.
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
    return tensors_.parameters;  // dense: biases, norms, embeddings
  }
  const std::vector<NamedBuffer>& buffers() const {
    return tensors_.buffers;
  }
  // True if training updates a buffer: if one is not fixed.
  bool updates_buffers() const;
  // The default of method.keep_dense.
  const std::vector<std::string>& keep_dense() const {
    return architecture_.keep_dense;
  }
  // Parameter count of the dense model, and the count of frozen parameters among them.
  std::int64_t dense_parameters() const;
  std::int64_t frozen_parameters() const;
  // Parameter count of the model as stored: factors in place of factored weights, and without
  // frozen parameters if there is a base().
  std::int64_t stored_parameters() const;

  // Freezes the weights and parameters that match these names or globs, of tensors or of their
  // layers. If several patterns match a tensor, the last one decides; a pattern with a leading `!`
  // makes its matches trained. Throws Error(Config) for a pattern that matches nothing.
  void freeze(const std::vector<std::string>& patterns);
  // If model files leave out frozen tensors: the hash of the initial state, which holds them; else
  // empty.
  const std::string& base() const {
    return base_;
  }
  void set_base(std::string hash) {
    base_ = std::move(hash);
  }
  SharedTensors& shared() {
    return *shared_;
  }

  // Torchvision's name for the tensor `name` of the model (timm's name).
  TorchvisionName torchvision_name(const std::string& name) const {
    return architecture_.torchvision_name == nullptr ? TorchvisionName{name}
                                                     : architecture_.torchvision_name(name);
  }
  // The widths that can be chosen individually, by `model.widths` or by `hidden` and `channels`.
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
  // Bytes of the largest result of an operator in a forward pass; 0 if unknown.
  double largest_result(std::int64_t examples) const {
    return architecture_.largest_result == nullptr ? 0 : architecture_.largest_result(examples);
  }

  // Fills every weight with random numbers, which depend only on the seed and the weight's place in
  // the model. init:
  //   kaiming     as the layer says (nn/init.h): as torchvision for resnet, as timm
  //               for vgg and vit
  //   orthogonal  every weight matrix is drawn from N(0, 1) and replaced by the factor
  //               U V^T of its SVD (linalg/orthogonal.h); all else as for kaiming
  //   zeros       everything that would be drawn is zero
  // An exported model starts with the values in its file; orthogonal and zeros replace its weights.
  void initialize(InitName init, std::uint64_t seed);
  // Copies all tensors of a model of the same architecture; frozen tensors are shared instead.
  void copy_from(const Model& other);

  // Moves all defined tensors to a device.
  void to(const at::Device& device);

  // The tensors of weights (some undefined), parameters and buffers.
  std::vector<at::Tensor*> tensors() const;

 private:
  // Takes the values of all tensors from the architecture's `initial`.
  void take_initial();
  std::set<const at::Tensor*> frozen_tensors() const;

  Architecture architecture_;
  at::Device device_ = at::kCPU;
  at::Generator generator_;
  Precision precision_;
  NamedTensors tensors_;
  std::string base_;
  std::shared_ptr<SharedTensors> shared_ = std::make_shared<SharedTensors>();
};

// Fills a contiguous fp32 tensor on the CPU. The values do not depend on the number of threads.
void draw(const at::Tensor& tensor, const Init& init, const Random& random);

// Whether the model has weights that consist of a frozen part and an adapter.
bool is_adapted(const Model& model);

// Whether a name or glob matches the name of the tensor or of its layer.
bool matches_tensor(const std::string& pattern, const std::string& tensor);

// The layers with a weight, for messages: "conv1, fc".
std::string layer_list(const Model& model);

// Throws Error(Config) for an unknown name or a shape that the family does not take.
std::unique_ptr<Model> make_model(const ModelOptions& options, const data::ExampleShape& shape);

// The weights' positions among all parameters, ascending.
std::vector<int> weight_positions(const Model& model);

// Returns the weights to factor, in the model's order. Candidates match a name or glob of `only`
// (empty: all) and are neither fixed nor, unless `frozen` is set, frozen. Weights that match a name
// or glob of `keep_dense` stay dense ("default" stands for the model's own list). Of the remaining
// candidates, the smallest also stay dense, as many as together have at most the share
// `dense_share` of the remaining parameters (of equally large weights, the first in the model).
// Throws Error(Config) for a pattern that matches no layer, or if the share leaves no layer to
// factor.
std::vector<NamedWeight> factorable_weights(
    const Model& model, const std::vector<std::string>& keep_dense, double dense_share = 0,
    const std::vector<std::string>& only = {}, bool frozen = false);

}  // namespace abtrain::nn
