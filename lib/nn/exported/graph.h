// The graph of an exported model: its operators, in order, and the values that they pass on.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/exported/argument.h"

namespace abtrain::nn {

struct GraphNode {
  std::string target;                     // "aten::conv2d", "_operator.mul"
  std::optional<c10::OperatorHandle> op;  // of aten
  // In the order of the operator's schema, with its defaults; without a schema, as in the file.
  std::vector<GraphArgument> arguments;
  std::vector<ValueId> outputs;  // of an operator that returns a list: its items
  // What blocks such as `with torch.no_grad()` or `with torch.autocast(...)` around it set.
  struct Modes {
    bool records_gradients = true;
    bool autocasts = true;
  } modes;
  std::string where;  // "layer 'fc1', model.py:12: x = self.fc1(x)"

  const GraphArgument* find(const std::string& name) const;
  std::vector<ValueId> inputs() const;
  // Whether the operator writes this argument in place.
  bool writes(std::size_t argument) const;
};

// A tensor that the graph has by itself.
struct GraphTensor {
  enum class Kind { Parameter, Buffer, Constant };
  std::vector<std::string> names;  // in the state dict; of tied parameters several
  Kind kind;
  ValueId value;
  bool persistent = true;

  const std::string& name() const {
    return names.front();
  }
};

// The size of a value in one dimension; nullopt: it depends on the batch.
using GraphSizes = std::vector<std::optional<std::int64_t>>;
struct GraphMeta {
  at::ScalarType type = at::ScalarType::Undefined;
  GraphSizes sizes;
  double numbers = 1;   // in the batch that the model was exported with
  int batch_sizes = 0;  // how many of the sizes depend on the batch
};

struct ExportedGraph {
  std::vector<GraphTensor> tensors;
  ValueId input = -1;
  ValueId output = -1;
  GraphMeta input_meta, output_meta;
  double examples = 1;           // in the batch that the model was exported with
  std::vector<GraphNode> nodes;  // only those whose results matter
  std::map<ValueId, GraphMeta> results;  // as the file declares them, by node output
  int values = 0;                // how many there are
};

// Throws Error(DamagedData) for a file that torch.export would not write, and Error(Config), naming
// the operator and its place in the user's source, for what abtrain does not run.
ExportedGraph read_graph(const ExportArchive& archive);

}  // namespace abtrain::nn
