// Records a model's evaluation pass as a list of PyTorch's operators, from which other programs
// build the same network for any batch size. A factored layer becomes two operators.
//
//   nn::Recording recording = nn::record(model, shape);
//   atomic_write("graph.json", recording.graph.dump());
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/example_shape.h"
#include "nn/model.h"

namespace abtrain::nn {

struct Recording {
  // {"input": {"dtype", "sizes"}, "tensors": [{"name", "dtype", "value", "is_trained"}], "nodes":
  // [{"op", "overload", "arguments", "outputs"}], "output"}.
  //
  // Values are numbered: 0 is the input, a tensor's number is its "value", and a node's "outputs"
  // are the numbers of its results (or null). If a node has the entry "lists", it returns its
  // outputs as one list. An argument is null or an object with one entry: "tensor" or "tensors":
  // numbers of values; "int" or "ints"; "float" or "floats", as text; "complex": both parts, as
  // text; "bool" or "bools"; "text"; "dtype" or "memory_format", by PyTorch's name.
  //
  // An integer that depends on the input's sizes is a list [c, b, t, bt], which stands for c + b B
  // + t T + bt B T with B examples of T tokens. The input's sizes are written likewise.
  nlohmann::ordered_json graph;
  // Names: NAME for a dense tensor of the model; NAME.inner, NAME.outer and NAME.rest for a
  // factored weight, with the shapes of nn/weight.h; constant_N for unnamed constants. A float64
  // constant is stored bit for bit as int64.
  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

// Runs the model on the CPU on a few batches of this shape, some with fewer tokens. Throws
// Error(Config) if its operators depend on the sizes in a way that the graph cannot express.
Recording record(Model& model, const data::ExampleShape& shape);

}  // namespace abtrain::nn
