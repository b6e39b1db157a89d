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
  // 0 and 1 / (1 - rate)
  at::Tensor mask = sizes == like.sizes() ? at::empty_like(like) : at::empty(sizes, like.options());
  mask.bernoulli_(1 - rate, random).div_(1 - rate);
  return input * mask;
}

namespace {

class Dropout : public Layer {
 public:
  Dropout(double rate, bool whole_examples) : rate_(rate), whole_examples_(whole_examples) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
    return pass.training && rate_ > 0
               ? dropped(input, rate_, whole_examples_ ? 1 : input.dim(), pass.random)
               : input;
  }

 private:
  double rate_;
  bool whole_examples_;
};

}  // namespace

std::unique_ptr<Layer> dropout(double rate, bool whole_examples) {
  return std::make_unique<Dropout>(rate, whole_examples);
}

}  // namespace abtrain::nn
