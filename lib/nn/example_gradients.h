// The per-example gradients g_0 .. g_{B-1} of a batch, from one pass over the whole batch. g_i is
// example i's share of the gradient of the loss on which backward() was called, so the g_i add up
// to the batch's gradient. Their inner products do not need all g_i in memory.
//
// Flat vectors hold the trained tensors one after another, each with its own strides
// (optim/parameter_block.h). Values are fp32, or fp64 for an fp64 pass. Everything is on the pass's
// device, and the host never waits for it.
//
//   Tape tape;
//   loss_of(model.forward(images, /*training=*/true, &tape)).backward();
//   at::Tensor products = example_gradients(tape, trained)->products();
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/model.h"
#include "nn/tape.h"

namespace abtrain::nn {

// A trained parameter and its offset in flat vectors.
struct Placed {
  at::Tensor tensor;
  std::int64_t offset = 0;
};

// The per-example gradients of a batch, in memory or only implied. Vectors are flat.
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

// Call after the backward pass. `trained`: the parameters that the gradients are taken for. Keeps
// up to `scratch` bytes of gradients and works in pieces of at most that many bytes (but at least
// one pair of examples or one channel). Throws std::logic_error unless each parameter is on the
// tape exactly once.
inline constexpr std::int64_t kExampleScratch = std::int64_t{64} << 20;
std::unique_ptr<UnitGradients> example_gradients(
    const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch = kExampleScratch);

// Whether example_gradients() takes this model: it was not exported, and all parameters are weights
// and biases of Linear and ungrouped convolution layers. If not, each example's gradient takes a
// pass.
bool has_example_gradients(const Model& model);

// True if the model has batch norm: then no single example's gradient exists.
bool mixes_examples(const Model& model);

}  // namespace abtrain::nn
