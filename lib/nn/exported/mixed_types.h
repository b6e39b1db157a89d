// Operators that need tensors of one type, in graphs where results of convolutions are bf16 and
// everything else is fp32.
#pragma once

#include <ATen/core/stack.h>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// How an operator of a graph takes bf16 and fp32 side by side.
enum class MixedTypes {
  Taken,     // PyTorch's operator or its autocast takes them
  Promoted,  // bf16 is cast if it is mixed with fp32
  Exact,     // the operator has no bf16 form, so that bf16 is always cast
  Written    // the others are cast to the type of the first argument, which is written in place
};
MixedTypes mixed_types(const GraphNode& node);

// Casts the floating-point tensors among an operator's arguments accordingly.
void cast_mixed(torch::jit::Stack& arguments, MixedTypes how);

}  // namespace abtrain::nn
