// What an exported graph does, one node after the other.
#pragma once

#include <functional>
#include <vector>

#include "nn/exported/graph.h"
#include "nn/layer.h"

namespace abtrain::nn {

// A forward pass on its way.
struct Frame {
  std::vector<c10::IValue>& values;  // by ValueId; none before it is computed or after its last use
  const Pass& pass;
  at::Device device;
  double most_bytes;  // of a value: the memory of the device

  c10::IValue value_of(const GraphArgument& argument) const;
  at::Tensor tensor_of(const GraphArgument& argument) const;  // undefined for none
  // Nothing if there is no such value.
  void store(ValueId id, c10::IValue value) const;
};

// What a node does in a pass.
using Step = std::function<void(const Frame& frame)>;

// In an evaluation, the step leaves out what the operator does only in training: it drops nothing,
// norms normalize by their running statistics, and random numbers are their means. While a pass
// collects statistics, norms with running statistics update these.
//
// `copies`: a view that the memory layout does not allow may be a copy.
// Throws Error(Config) for an operator that draws random numbers in another way.
Step make_step(const GraphNode& node, bool copies, const std::string& path);

// The rate of a node's dropout, which the file has as a number; 0 if it has none of this name.
double rate_of(const GraphNode& node, const char* name);

}  // namespace abtrain::nn
