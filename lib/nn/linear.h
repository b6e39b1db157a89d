// Linear and convolution layers, dense or with low-rank factors (nn/weight.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "nn/layer.h"

namespace abtrain::nn {

// The type in which a product with this weight is computed. `thin`: a side of a matrix is below 16
// (ops::bf16_product_pays_from()).
at::ScalarType product_type(
    const Precision& precision, const at::Tensor& weight, std::int64_t multiplications,
    bool thin = false);

// Applies a weight, dense or factored, to an input (... x I); returns ... x O. The bias (O) may be
// undefined.
at::Tensor apply_linear(
    const Weight& weight, const at::Tensor& bias, const at::Tensor& input, const Pass& pass);

// How a convolution moves over its input, per dimension of the image.
struct Window {
  std::array<std::int64_t, 2> stride = {1, 1};
  std::array<std::int64_t, 2> padding = {0, 0};
  std::array<std::int64_t, 2> dilation = {1, 1};
  std::int64_t groups = 1;
  // If set, adaptive average pooling enlarges an input that is smaller than the kernel to the
  // kernel's size, as in the head of timm's VGG.
  bool grows_input = false;
};
// Applies a convolution's weight, O x I x kh x kw, to an input of B x I x H x W; returns
// B x O x H' x W'. With a tape, the window must be equal in both dimensions.
at::Tensor apply_conv(
    const Weight& weight, const at::Tensor& bias, const at::Tensor& input, const Window& window,
    const Pass& pass);

// A layer that maps `in` features to `out` features. Without `init`, initialized as in PyTorch.
std::unique_ptr<Layer> linear(
    std::int64_t in, std::int64_t out, bool bias = true, std::optional<LayerInit> init = {});

struct ConvOptions {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  std::int64_t groups = 1;
  bool bias = true;
  bool grows_input = false;            // see Window
  std::optional<LayerInit> init = {};  // default: He normal by fan-out
};

std::unique_ptr<Layer> conv2d(std::int64_t in, std::int64_t out, const ConvOptions& options = {});

}  // namespace abtrain::nn
