// Dropout. Masks come from each worker's own generator, so they differ between
// workers.
#pragma once

#include "nn/layer.h"

namespace abtrain::nn {

// In training, zeroes each element with probability `rate` and scales the
// others by 1 / (1 - rate) (Srivastava et al. 2014).
class Dropout : public Layer {
 public:
  explicit Dropout(double rate) : rate_(rate) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  double rate_;
};

// The same for all elements of an example at once. In a residual branch this is
// stochastic depth (Huang et al. 2016).
class DropPath : public Layer {
 public:
  explicit DropPath(double rate) : rate_(rate) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  double rate_;
};

}  // namespace abtrain::nn
