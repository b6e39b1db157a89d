#include "nn/exported/shape_check.h"

#include <algorithm>

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
      "model.file: {}: the model returns {}, but the data set needs {} (the last size is that of "
      "the {})",
      path, shown(output), shown(wanted),
      shape.regression                ? "targets"
      : is_text && shape.token_labels ? "tokens"
                                      : "classes");
  return single && output.size() == 1 ? GraphSizes{std::nullopt} : wanted;
}

}  // namespace abtrain::nn
