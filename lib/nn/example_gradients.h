// The per-example gradients g_0 .. g_{B-1} of a batch, from one pass over the
// whole batch. g_i is example i's share of the gradient of the loss that
// backward was called on, so the g_i add up to the batch's gradient. Inner
// products are computed without keeping the gradients.
//
// Flat vectors hold the trained tensors one after another, each with its own
// strides (optim/parameter_block.h). Values are fp32, or fp64 for a pass in
// fp64. Everything is on the pass's device, and the host never waits for it.
//
//   Tape tape;
//   loss_of(model.forward(images, /*training=*/true, &tape)).backward();
//   at::Tensor products = ExampleGradients(tape, trained).products();
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "nn/example_map.h"
#include "nn/model.h"
#include "nn/tape.h"

namespace abtrain::nn {

// The gradients of the examples of a batch, whether they are built or not.
// Vectors are flat.
class UnitGradients {
 public:
  virtual ~UnitGradients() = default;
  virtual std::int64_t size() const = 0;
  // All <g_i, g_j>, size x size.
  virtual at::Tensor products() const = 0;
  // All <vector, g_i>.
  virtual at::Tensor products(const at::Tensor& vector) const = 0;
  // vector += sum_i coefficients_i g_i. All have the same dtype.
  virtual void add(const at::Tensor& vector, const at::Tensor& coefficients) const = 0;
  // Row k of `rows` (size/2 x numbers) becomes g_{2k} - g_{2k+1}.
  virtual void differences(const at::Tensor& rows) const = 0;
};

class ExampleGradients : public UnitGradients {
 public:
  static constexpr std::int64_t kScratch = std::int64_t{64} << 20;

  // Construct after the backward pass. `trained`: the parameters that count.
  // Keeps up to `scratch` bytes of built gradients, and works in pieces of at
  // most as many bytes (but at least one pair of examples or one channel).
  // Throws std::logic_error if a parameter is not on the tape exactly once.
  ExampleGradients(
      const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch = kScratch);

  std::int64_t size() const override {
    return examples_;
  }
  at::Tensor products() const override;
  at::Tensor products(const at::Tensor& vector) const override;
  void add(const at::Tensor& vector, const at::Tensor& coefficients) const override;
  void differences(const at::Tensor& rows) const override;

 private:
  std::int64_t examples_ = 0;
  std::vector<ExampleMap> maps_;
};

// True if all parameters of the model are weights and biases of Linear and
// ungrouped convolution layers. Otherwise each example's gradient takes a pass
// of its own.
bool has_example_gradients(const Model& model);

// True if the model has batch norm: then an example has no gradient of its own.
bool mixes_examples(const Model& model);

}  // namespace abtrain::nn
