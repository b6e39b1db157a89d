#include "nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace abtrain::nn {

at::Tensor dropped(
    const at::Tensor& input, double rate, std::int64_t dims, const at::Generator& random) {
  ABT_ASSERT(random.defined(), "dropout in training without a generator");
  const at::Tensor like = input.detach();
  std::vector<std::int64_t> sizes = like.sizes().vec();
  std::fill(sizes.begin() + std::min(dims, like.dim()), sizes.end(), 1);
  // Holds 0 or 1 / (1 - rate).
  at::Tensor mask = sizes == like.sizes() ? at::empty_like(like) : at::empty(sizes, like.options());
  mask.bernoulli_(1 - rate, random).div_(1 - rate);
  return input * mask;
}

std::unique_ptr<Layer> dropout(double rate, bool whole_examples) {
  return std::make_unique<Function>([=](const at::Tensor& x, const Pass& pass) {
    return pass.training && rate > 0 ? dropped(x, rate, whole_examples ? 1 : x.dim(), pass.random)
                                     : x;
  });
}

}  // namespace abtrain::nn
