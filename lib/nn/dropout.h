// Dropout. Masks come from each worker's own generator, so they differ between
// workers.
#pragma once

#include "nn/layer.h"

namespace abtrain::nn {

// Zeroes elements with probability `rate`, all those together that have the same place in the first
// `dims` dimensions, and scales the others by 1 / (1 - rate).
at::Tensor dropped(
    const at::Tensor& input, double rate, std::int64_t dims, const at::Generator& random);

// In training, zeroes each element with probability `rate` and scales the
// others by 1 / (1 - rate) (Srivastava et al. 2014). `whole_examples`: the same
// for all elements of an example at once, which in a residual branch is
// stochastic depth (Huang et al. 2016).
class Dropout : public Layer {
 public:
  explicit Dropout(double rate, bool whole_examples = false)
      : rate_(rate), whole_examples_(whole_examples) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  double rate_;
  bool whole_examples_;
};

}  // namespace abtrain::nn
