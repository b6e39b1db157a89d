// Normalization layers.
#pragma once

#include "nn/layer.h"

namespace abtrain::nn {

// Normalizes over the worker's own batch (momentum 0.1, or the share that the
// pass asks for; eps 1e-5). A ReLU that follows is applied in place.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels);
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;
  void list(const std::string& prefix, NamedTensors& tensors) override;

 private:
  at::Tensor weight_, bias_, mean_, variance_;
};

// Normalizes over the last dimension.
class LayerNorm : public Layer {
 public:
  LayerNorm(std::int64_t features, double eps);
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;
  void list(const std::string& prefix, NamedTensors& tensors) override;

 private:
  at::Tensor weight_, bias_;
  double eps_;
};

}  // namespace abtrain::nn
