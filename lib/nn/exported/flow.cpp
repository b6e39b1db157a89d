#include "nn/exported/flow.h"

#include <ranges>

namespace abtrain::nn {

std::map<ValueId, ValueId> view_roots(const std::vector<GraphNode>& nodes) {
  std::map<ValueId, ValueId> roots;
  for (const GraphNode& node : nodes) {
    for (std::size_t i = 0; node.op && i < node.arguments.size(); ++i) {
      const std::optional<ValueId> value = node.arguments[i].value();
      if (value && node.op->schema().arguments()[i].alias_info() != nullptr) {
        const ValueId root = root_of(roots, *value);
        for (const ValueId output : node.outputs) {
          roots[output] = root;
        }
      }
    }
  }
  return roots;
}

ValueId root_of(const std::map<ValueId, ValueId>& roots, ValueId id) {
  const auto place = roots.find(id);
  return place == roots.end() ? id : place->second;
}

std::set<ValueId> values_with_gradients(const ExportedGraph& graph) {
  const std::map<ValueId, ValueId> roots = view_roots(graph.nodes);
  std::set<ValueId> values = {graph.output};
  std::set<ValueId> memory = {root_of(roots, graph.output)};  // that a write may reach
  for (const GraphNode& node : std::views::reverse(graph.nodes)) {
    bool reaches =
        std::ranges::any_of(node.outputs, [&](ValueId id) { return values.contains(id); });
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const std::optional<ValueId> value = node.arguments[i].value();
      reaches |= node.writes(i) && value && memory.contains(root_of(roots, *value));
    }
    if (!reaches || !node.modes.records_gradients || node.target.starts_with("aten::detach")) {
      continue;
    }
    for (const ValueId id : node.inputs()) {
      values.insert(id);
      memory.insert(root_of(roots, id));
    }
  }
  return values;
}

}  // namespace abtrain::nn
