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
  // Stores nothing if `id` is none.
  void store(ValueId id, c10::IValue value) const;
};

// The action of one node in a pass.
using Step = std::function<void(const Frame& frame)>;

// In evaluations the step leaves out what the operator does only in training: it drops nothing,
// norms normalize by their running statistics, and random numbers are replaced by their means.
// While a pass collects statistics, norms with running statistics update them.
//
// `copies`: a view that the memory layout does not allow may be a copy. Throws Error(Config) for an
// operator that draws random numbers in another way.
Step make_step(const GraphNode& node, bool copies, const std::string& path);

// The rate of a node's dropout, a constant in the file; 0 if there is none of this name.
double rate_of(const GraphNode& node, const char* name);

}  // namespace abtrain::nn
