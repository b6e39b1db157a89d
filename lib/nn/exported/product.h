// Finds and runs the nodes of an exported graph that multiply by a weight, dense or factored.
#pragma once

#include <c10/core/DispatchKeySet.h>

#include <optional>

#include "nn/exported/steps.h"
#include "nn/linear.h"

namespace abtrain::nn {

// How a node uses a parameter as the weight of a linear map or convolution.
struct WeightUse {
  ValueId weight = -1, input = -1, bias = -1;
  bool convolves = false;
  bool transposed = false;  // the parameter is I x O
  Window window = {};

  bool same_form(const WeightUse& other) const {
    return convolves == other.convolves && transposed == other.transposed &&
           (window.groups > 1) == (other.window.groups > 1);
  }
};

// Finds how the node uses a value as a weight; nullopt if it does not.
std::optional<WeightUse> weight_use(const GraphNode& node);

// PyTorch's autocast keys, for code that excludes autocast.
constexpr c10::DispatchKeySet kAutocast(
    {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA});

// Makes a step that applies the weight, which must outlive the step.
Step make_product(const Weight& weight, const WeightUse& use, ValueId output);

}  // namespace abtrain::nn
