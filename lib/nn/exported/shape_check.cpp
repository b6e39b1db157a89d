#include "nn/exported/shape_check.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/mapped.h"
#include "base/text.h"

namespace abtrain::nn {

std::string shown(const GraphSizes& sizes) {
  const auto text = [](const auto& size) { return size ? std::to_string(*size) : "any"; };
  return join(mapped(sizes, text), " x ");
}

bool fits(const GraphSizes& own, const GraphSizes& wanted) {
  return std::ranges::equal(
      own, wanted, [](const auto& a, const auto& b) { return !a || !b || *a == *b; });
}

namespace {

// Bytes of a value for this number of examples and of tokens in each (0: as at export), if sizes
// grow in proportion. Fewer count as at export, since a size may be T + 4. Returns 0 for a value
// that the file does not declare.
double declared_bytes(
    const ExportedGraph& graph, ValueId id, std::int64_t examples, std::int64_t length) {
  const auto place = graph.results.find(id);
  if (place == graph.results.end() || place->second.type == at::ScalarType::Undefined) {
    return 0;
  }
  const GraphMeta& meta = place->second;
  return meta.numbers * static_cast<double>(c10::elementSize(meta.type)) *
         std::pow(std::max(1.0, static_cast<double>(examples) / graph.examples), meta.batch_power) *
         std::pow(std::max(1.0, static_cast<double>(length) / graph.length), meta.length_power);
}

}  // namespace

double largest_result(const ExportedGraph& graph, std::int64_t examples, std::int64_t length) {
  double most = 0;
  for (const GraphNode& node : graph.nodes) {
    for (const ValueId id : node.outputs) {
      most = std::max(most, declared_bytes(graph, id, examples, length));
    }
  }
  return most;
}

void check_memory(
    const ExportedGraph& graph, const GraphNode& node, const std::vector<c10::IValue>& values,
    std::int64_t examples, std::int64_t length) {
  // A margin: numbers may take 64 bits instead of 32, and not all sizes grow in proportion to the
  // batch.
  constexpr double kTimes = 4;
  for (const ValueId id : node.outputs) {
    const double declared = id < 0 ? 0 : declared_bytes(graph, id, examples, length);
    const c10::IValue value = declared > 0 ? values[static_cast<std::size_t>(id)] : c10::IValue();
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor& tensor = value.toTensor();
      const auto bytes = static_cast<double>(tensor.numel() * tensor.itemsize());
      TORCH_CHECK(
          bytes <= kTimes * declared, "a result of ", tensor.sizes(), " takes ", human_bytes(bytes),
          ", but the file says ", human_bytes(declared));
    }
  }
}

GraphSizes check_shape(
    const std::string& path, const ExportedGraph& graph, const data::ExampleShape& shape) {
  const GraphSizes& sizes = graph.input_meta.sizes;
  ABT_CHECK(
      !sizes.empty() && !sizes[0], Config,
      "model.file: {}: the model was exported for batches of a fixed size; export it with a "
      "dynamic one, as abtrain.save_model() does",
      path);
  const bool is_text = shape.context > 0;
  ABT_CHECK(
      graph.input_meta.type == (is_text ? at::kLong : at::kFloat), Config,
      "model.file: {}: the model takes {}, but the data set has {}", path,
      c10::toString(graph.input_meta.type), is_text ? "tokens (Long)" : "numbers (Float)");
  GraphSizes input = {std::nullopt};
  if (!shape.sizes.empty()) {
    input.insert(input.end(), shape.sizes.begin(), shape.sizes.end());
  } else if (is_text) {
    input.emplace_back(shape.context);
  } else {
    input.insert(input.end(), {shape.channels, shape.height, shape.width});
  }
  ABT_CHECK(
      fits(sizes, input), Config,
      "model.file: {}: the model takes inputs of {}, but those of the data set have {} (the first "
      "size is the batch)",
      path, shown(sizes), shown(input));
  const GraphSizes& output = graph.output_meta.sizes;
  GraphSizes wanted = {std::nullopt, shape.classes};
  if (is_text && shape.token_labels) {
    wanted.insert(wanted.begin() + 1, shape.context);
  }
  const bool single = shape.regression && shape.classes == 1 && output.size() == 1;
  ABT_CHECK(
      single || fits(output, wanted), Config,
      "model.file: {}: the model returns {}, but the data set needs {} (the last size is the "
      "number of {})",
      path, shown(output), shown(wanted),
      shape.regression ? "targets" : "classes");
  return single && output.size() == 1 ? GraphSizes{std::nullopt} : wanted;
}

}  // namespace abtrain::nn
