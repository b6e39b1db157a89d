// Dropout, from the worker's own generator: masks differ between workers.
#pragma once

#include "nn/layer.h"

namespace abtrain::nn {

// Each number is zeroed with probability `rate` in training, the others grow by
// 1 / (1 - rate) (Srivastava et al. 2014).
class Dropout : public Layer {
 public:
  explicit Dropout(double rate) : rate_(rate) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  double rate_;
};

// The same for all numbers of an example at once: stochastic depth (Huang et al.
// 2016) where it stands in a residual branch.
class DropPath : public Layer {
 public:
  explicit DropPath(double rate) : rate_(rate) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  double rate_;
};

}  // namespace abtrain::nn
