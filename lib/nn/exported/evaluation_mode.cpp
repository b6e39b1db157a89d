#include "nn/exported/evaluation_mode.h"

#include "base/text.h"
#include "nn/exported/steps.h"

namespace abtrain::nn {

namespace {

std::optional<bool> flag_of(const GraphNode& node, const char* name) {
  const GraphArgument* const argument = node.find(name);
  return argument != nullptr && argument->constant.isBool()
             ? std::optional(argument->constant.toBool())
             : std::nullopt;
}

// True if the node is dropout with a rate above 0 that is active in training; false if it is
// switched off; nullopt if it is not dropout.
std::optional<bool> drops(const GraphNode& node) {
  if (node.target == "aten::bernoulli_" || rate_of(node, "dropout_p") > 0) {
    return true;
  }
  const bool is_dropout = node.target.find("dropout") != std::string::npos;
  return is_dropout && rate_of(node, "p") > 0 ? flag_of(node, "train") : std::nullopt;
}

}  // namespace

std::optional<bool> norm_trains(const GraphNode& node) {
  const GraphArgument* const mean = node.find("running_mean");
  if (mean == nullptr || !mean->value()) {
    return std::nullopt;
  }
  return flag_of(node, node.find("training") != nullptr ? "training" : "use_input_stats");
}

std::string why_untrainable(const ExportedGraph& graph) {
  std::string norm;
  std::string dropout;
  for (const GraphNode& node : graph.nodes) {
    if (norm_trains(node) == true || drops(node) == true) {
      return "";
    }
    if (norm.empty() && norm_trains(node) == false) {
      norm = formatted("{}{} keeps its running statistics", node.target, node.where);
    }
    if (dropout.empty() && drops(node) == false) {
      dropout = formatted("{}{} drops nothing", node.target, node.where);
    }
  }
  if (norm.empty() && dropout.empty()) {
    return "";
  }
  return formatted(
      "nothing in the model is in training mode: even in training, {}{}{}. If these are frozen on "
      "purpose, set model.eval_mode: true; if the model was exported after eval(), export it after "
      "train()",
      norm, norm.empty() || dropout.empty() ? "" : ", and ", dropout);
}

}  // namespace abtrain::nn
