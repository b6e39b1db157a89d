// Normalization layers.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace abtrain::nn {

// Batch normalization of images, B x C x H x W. Normalizes by this worker's own batch in training
// or if Pass::statistics_share is above 0, otherwise by the running statistics. eps is 1e-5; the
// momentum is 0.1, or statistics_share if that is above 0. A ReLU that follows overwrites the
// output in place. Throws Error(Config) if it would normalize by a batch with a single value per
// channel.
std::unique_ptr<Layer> batch_norm(std::int64_t channels);

// Normalizes over the last dimension.
std::unique_ptr<Layer> layer_norm(std::int64_t features, double eps);

}  // namespace abtrain::nn
