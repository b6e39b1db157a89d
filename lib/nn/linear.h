// Linear and convolution layers, dense or as low-rank factors (nn/weight.h).
#pragma once

#include <optional>

#include "nn/layer.h"

namespace abtrain::nn {

// What a product with this weight computes in.
at::ScalarType product_type(
    const Precision& precision, const at::Tensor& weight, std::int64_t multiplications);

// What both have.
class WeightLayer : public Layer {
 public:
  void visit(const std::string& prefix, Visitor& visitor) override;

 protected:
  WeightLayer(Weight weight, bool bias, const LayerInit& init);
  // What a pass over so many `positions` (weight.h) computes in.
  at::ScalarType type_of(const Pass& pass, std::int64_t positions) const;

  Weight weight_;
  at::Tensor bias_;

 private:
  LayerInit init_;
};

// Maps `in` features to `out`. Initialized as PyTorch does, unless `init` is
// given.
class Linear : public WeightLayer {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias = true, std::optional<LayerInit> init = {});
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;
};

struct ConvOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  std::int64_t groups = 1;
  bool bias = true;
  // An input smaller than the kernel is enlarged to its size by adaptive
  // average pooling, as in the head of timm's VGG.
  bool grows_input = false;
  std::optional<LayerInit> init = {};  // default: He normal by fan-out
};

class Conv2d : public WeightLayer {
 public:
  Conv2d(std::int64_t in, std::int64_t out, ConvOptions options);
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  // Output length along one side, for an input of length `side`.
  std::int64_t output_side(std::int64_t side) const;
  at::Tensor convolve(
      const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
      at::ScalarType type, Tape* tape) const;

  ConvOptions options_;
};

}  // namespace abtrain::nn
