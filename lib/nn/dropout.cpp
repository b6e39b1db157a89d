#include "nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace abtrain::nn {

at::Tensor dropped(
    const at::Tensor& input, double rate, at::IntArrayRef mask_sizes, const at::Generator& random) {
  ABT_ASSERT(random.defined(), "dropout in training without a generator");
  const at::Tensor like = input.detach();
  // 0 and 1 / (1 - rate)
  at::Tensor mask =
      mask_sizes == like.sizes() ? at::empty_like(like) : at::empty(mask_sizes, like.options());
  mask.bernoulli_(1 - rate, random).div_(1 - rate);
  return input * mask;
}

at::Tensor Dropout::forward(const at::Tensor& input, const Pass& pass) {
  if (!pass.training || rate_ == 0) {
    return input;
  }
  std::vector<std::int64_t> sizes = input.sizes().vec();
  if (whole_examples_) {
    std::fill(sizes.begin() + 1, sizes.end(), 1);
  }
  return dropped(input, rate_, sizes, pass.random);
}

}  // namespace abtrain::nn
