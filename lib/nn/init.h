// How initial weights and biases are drawn.
#pragma once

#include <cmath>
#include <cstdint>

namespace abtrain::nn {

struct Init {
  enum class Kind { Kept, Uniform, Normal };  // Kept: not drawn, as constructed
  Kind kind = Kind::Kept;
  double scale = 0;  // Uniform: bound; Normal: standard deviation
};

// Initialization of a Linear or conv layer.
struct LayerInit {
  Init weight;
  Init bias;  // Kept: zeros
};

// PyTorch's own default for Linear and conv layers: U(-b, b), b = 1 / sqrt(fan_in).
inline LayerInit uniform_by_fan_in(std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return {{Init::Kind::Uniform, bound}, {Init::Kind::Uniform, bound}};
}
// He et al. 2015 by fan-out, as torchvision and timm initialize convolutions.
inline LayerInit he_normal(std::int64_t fan_out) {
  return {{Init::Kind::Normal, std::sqrt(2.0 / static_cast<double>(fan_out))}, {}};
}
inline LayerInit normal(double deviation) {
  return {{Init::Kind::Normal, deviation}, {}};
}

}  // namespace abtrain::nn
