#include "nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"

namespace abtrain::nn {

at::Tensor Dropout::forward(const at::Tensor& input, const Pass& pass) {
  if (!pass.training || rate_ == 0) {
    return input;
  }
  ABT_ASSERT(pass.random.defined(), "dropout in training without a generator");
  at::Tensor mask;  // 0 and 1 / (1 - rate)
  if (whole_examples_) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
    sizes[0] = input.size(0);
    mask = at::empty(sizes, input.detach().options());
  } else {
    mask = at::empty_like(input.detach());
  }
  mask.bernoulli_(1 - rate_, pass.random).div_(1 - rate_);
  return input * mask;
}

}  // namespace abtrain::nn
