#include "nn/exported/flow.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "base/error.h"

namespace abtrain::nn {

const GraphArgument* GraphNode::find(const std::string& name) const {
  const auto place = std::ranges::find(arguments, name, &GraphArgument::name);
  return place == arguments.end() ? nullptr : &*place;
}

std::vector<ValueId> GraphNode::inputs() const {
  std::vector<ValueId> all;
  for (const GraphArgument& argument : arguments) {
    std::ranges::copy_if(
        argument.values, std::back_inserter(all), [](ValueId id) { return id >= 0; });
  }
  return all;
}

bool GraphNode::writes(std::size_t argument) const {
  const c10::AliasInfo* alias = op ? op->schema().arguments()[argument].alias_info() : nullptr;
  return alias != nullptr && alias->isWrite();
}

std::map<ValueId, ValueId> view_roots(const std::vector<GraphNode>& nodes) {
  // These may return their argument itself, though their schemas do not say so.
  static const std::set<std::string> kPassing = {"aten::dropout",    "aten::feature_dropout",
                                                 "aten::type_as",    "aten::atleast_1d",
                                                 "aten::atleast_2d", "aten::atleast_3d"};
  std::map<ValueId, ValueId> roots;
  for (const GraphNode& node : nodes) {
    for (std::size_t i = 0; node.op && i < node.arguments.size(); ++i) {
      const std::optional<ValueId> value = node.arguments[i].value();
      if (value && (node.op->schema().arguments()[i].alias_info() != nullptr ||
                    (i == 0 && kPassing.contains(node.target)))) {
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

bool depends_on_layout(const std::vector<GraphNode>& nodes) {
  static const std::set<std::string> kViewsOrCopies = {
      "aten::view",    "aten::view_as", "aten::reshape",    "aten::reshape_as",
      "aten::flatten", "aten::ravel",   "aten::contiguous", "aten::to"};
  static const std::set<std::string> kOfMemory = {
      "aten::view_as_complex", "aten::sym_stride", "aten::sym_storage_offset"};
  const std::map<ValueId, ValueId> roots = view_roots(nodes);
  std::set<ValueId> written;  // by later nodes
  for (const GraphNode& node : std::views::reverse(nodes)) {
    const std::optional<ValueId> first =
        node.arguments.empty() ? std::nullopt : node.arguments[0].value();
    // view(dtype) takes the bytes as another type.
    const bool is_of_memory =
        kOfMemory.contains(node.target) ||
        (node.target == "aten::view" && node.op->schema().overload_name() == "dtype");
    if (is_of_memory || (first && kViewsOrCopies.contains(node.target) &&
                         written.contains(root_of(roots, *first)))) {
      return true;
    }
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      if (const auto value = node.arguments[i].value(); value && node.writes(i)) {
        written.insert(root_of(roots, *value));
      }
    }
  }
  return false;
}

std::set<ValueId> values_with_gradients(const ExportedGraph& graph) {
  const std::map<ValueId, ValueId> roots = view_roots(graph.nodes);
  std::set<ValueId> values = {graph.output};
  std::set<ValueId> memory = {root_of(roots, graph.output)};  // writing it may reach the output
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

void drop_unused(ExportedGraph& graph, const std::string& path) {
  const std::map<ValueId, ValueId> roots = view_roots(graph.nodes);
  std::set<ValueId> read;  // by more than what counts in place
  for (const GraphNode& node : graph.nodes) {
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      for (const ValueId id : node.arguments[i].values) {
        if (!node.writes(i)) {
          read.insert(root_of(roots, id));
        }
      }
    }
  }
  std::set<ValueId> own;
  for (const GraphTensor& tensor : graph.tensors) {
    own.insert(tensor.value);
  }
  std::set<ValueId> needed = {graph.output};
  std::vector<GraphNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool matters =
        std::ranges::any_of(node->outputs, [&](ValueId id) { return needed.contains(id); });
    for (std::size_t i = 0; i < node->arguments.size(); ++i) {
      const std::optional<ValueId> target = node->arguments[i].value();
      if (!node->writes(i) || !target) {
        continue;
      }
      const ValueId root = root_of(roots, *target);
      const bool is_own = own.contains(root);
      const bool counts = is_own && !matters && !read.contains(root);
      matters |= !counts;
      ABT_CHECK(
          counts || !is_own, Config,
          "model.file: {}: operator {}{} changes a tensor of the model in place; expected only "
          "running statistics of norms to change",
          path, node->target, node->where);
    }
    if (matters) {
      const std::vector<ValueId> inputs = node->inputs();
      needed.insert(inputs.begin(), inputs.end());
      kept.push_back(std::move(*node));
    }
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
}

void number_norm_calls(ExportedGraph& graph) {
  std::map<ValueId, std::vector<GraphNode*>> norms;  // by their running means
  for (GraphNode& node : graph.nodes) {
    const GraphArgument* const mean = node.find("running_mean");
    if (mean != nullptr && mean->value()) {
      norms[*mean->value()].push_back(&node);
    }
  }
  for (const auto& [mean, calls] : norms) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i]->norm_call = static_cast<int>(i);
      calls[i]->norm_calls = static_cast<int>(calls.size());
    }
  }
}

}  // namespace abtrain::nn
