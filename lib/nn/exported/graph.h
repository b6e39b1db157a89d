// The graph of an exported model: its operators, in order, and the values that they exchange.
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
  std::optional<c10::OperatorHandle> op;  // aten operators only
  // In the order of the operator's schema, with defaults filled in; without a schema, as in the
  // file.
  std::vector<GraphArgument> arguments;
  std::vector<ValueId> outputs;  // one per item if the operator returns a list
  // Modes set by surrounding blocks such as `with torch.no_grad()` or `with torch.autocast(...)`.
  struct Modes {
    bool records_gradients = true;
    bool autocasts = true;
  } modes;
  std::string where;  // "layer 'fc1', model.py:12: x = self.fc1(x)"
  // If the node calls a norm with running statistics: how many calls of this norm come before it in
  // a pass, and how many there are.
  int norm_call = 0;
  int norm_calls = 1;

  const GraphArgument* find(const std::string& name) const;
  std::vector<ValueId> inputs() const;
  // Whether the operator writes this argument in place.
  bool writes(std::size_t argument) const;
};

// A tensor that belongs to the graph.
struct GraphTensor {
  enum class Kind { Parameter, Buffer, Constant };
  std::vector<std::string> names;  // in the state dict; several if tied
  Kind kind;
  ValueId value;
  bool persistent = true;

  const std::string& name() const {
    return names.front();
  }
};

// The sizes of a value, by dimension; nullopt: the size depends on the batch.
using GraphSizes = std::vector<std::optional<std::int64_t>>;
struct GraphMeta {
  at::ScalarType type = at::ScalarType::Undefined;
  GraphSizes sizes;
  // Element count in the batch used for the export; 0 if the file does not say, as for sizes that
  // depend on values.
  double numbers = 1;
  // The powers of the number of examples and of the input's second size (tokens) in the element
  // count.
  int batch_power = 0;
  int length_power = 0;
  bool channels_last = false;
};

// FileForm::library of exported models.
inline constexpr const char* kExportedLibrary = "the exported model";

struct ExportedGraph {
  std::vector<GraphTensor> tensors;
  ValueId input = -1;
  ValueId output = -1;
  GraphMeta input_meta, output_meta;
  double examples = 1;                   // in the batch used for the export
  double length = 1;                     // the input's second size there; 1 if that is fixed
  std::vector<GraphNode> nodes;          // only those that the output depends on
  std::map<ValueId, GraphMeta> results;  // by node output, as the file declares them
  int values = 0;                        // number of values
};

// The power of `symbol` in an expression of SymPy's: 3 for "s7" in "s7*s3*s7**2". At least 1 if it
// occurs at all; 0 if not, or if it is empty.
int power_in(const std::string& expression, const std::string& symbol);

// Throws Error(DamagedData) for a file that torch.export would not write. Throws Error(Config),
// which names the operator and its place in the user's source, for operators that abtrain does not
// run.
ExportedGraph read_graph(const ExportArchive& archive);

}  // namespace abtrain::nn
