// Dropout. Each worker draws masks from its own generator, so masks differ between workers.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/layer.h"

namespace abtrain::nn {

// Zeroes elements with probability `rate` and scales the others by 1 / (1 - rate). Elements with
// the same indices in the first `dims` dimensions share one draw.
at::Tensor dropped(
    const at::Tensor& input, double rate, std::int64_t dims, const at::Generator& random);

// In training, zeroes each element with probability `rate` and scales the others by 1 / (1 - rate)
// (Srivastava et al. 2014). `whole_examples`: one draw for all elements of an example, which in a
// residual branch is stochastic depth (Huang et al. 2016).
std::unique_ptr<Layer> dropout(double rate, bool whole_examples = false);

}  // namespace abtrain::nn
