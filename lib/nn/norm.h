// Normalization layers.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace abtrain::nn {

// Of images. Normalizes over the worker's own batch (momentum 0.1, or the share
// that the pass asks for; eps 1e-5). A ReLU that follows is applied in place.
std::unique_ptr<Layer> batch_norm(std::int64_t channels);

// Normalizes over the last dimension.
std::unique_ptr<Layer> layer_norm(std::int64_t features, double eps);

}  // namespace abtrain::nn
