// The execution of an exported graph, one node after another.
#pragma once

#include <functional>
#include <vector>

#include "nn/exported/graph.h"
#include "nn/layer.h"

namespace abtrain::nn {

// The state of a forward pass.
struct Frame {
  std::vector<c10::IValue>& values;  // by ValueId; none before it is computed or after its last use
  const Pass& pass;
  at::Device device;
  double most_bytes;  // limit for one value: the device's memory

  c10::IValue value_of(const GraphArgument& argument) const;
  at::Tensor tensor_of(const GraphArgument& argument) const;  // undefined if none
  // Stores the value unless `id` is -1. Throws c10::Error if it takes more than `most_bytes`.
  void store(ValueId id, c10::IValue value) const;
};

// The action of one node in a pass.
using Step = std::function<void(const Frame& frame)>;

// Makes the step of a node. In evaluations, dropout drops nothing, norms normalize by their running
// statistics, and random numbers are replaced by their means. While a pass collects statistics,
// norms with running statistics update them.
//
// `as_laid_out`: tensors lie in memory as in PyTorch (depends_on_layout()). Else a view becomes a
// copy if the layout allows no view. Throws Error(Config) for an operator that draws random numbers
// other than for dropout or stochastic depth.
Step make_step(const GraphNode& node, bool as_laid_out, const std::string& path);

// The rate of a node's dropout: its constant argument `name`; 0 if it has none.
double rate_of(const GraphNode& node, const char* name);

}  // namespace abtrain::nn
