#include "nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"

namespace abtrain::nn {

namespace {

// The input times a new mask of 0 and 1 / (1 - rate).
at::Tensor drop(
    const at::Tensor& input, at::Tensor mask, double rate, const Pass& pass) {
  ABT_ASSERT(
      pass.random.defined(), "dropout in training without a generator");
  mask.bernoulli_(1 - rate, pass.random).div_(1 - rate);
  return input * mask;
}

}  // namespace

at::Tensor Dropout::forward(const at::Tensor& input, const Pass& pass) {
  if (!pass.training || rate_ == 0) {
    return input;
  }
  return drop(input, at::empty_like(input.detach()), rate_, pass);
}

at::Tensor DropPath::forward(const at::Tensor& input, const Pass& pass) {
  if (!pass.training || rate_ == 0) {
    return input;
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  return drop(
      input, at::empty(sizes, input.detach().options()), rate_, pass);
}

}  // namespace abtrain::nn
