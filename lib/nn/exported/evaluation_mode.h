// Recognizes a model that was exported in evaluation mode, after eval(). Even in training, its
// norms never update their running statistics and its dropout drops nothing.
#pragma once

#include <optional>
#include <string>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// True if the node is a norm that normalizes by the batch and updates its running statistics; false
// if it normalizes by its running statistics; nullopt if it is not a norm with running statistics.
std::optional<bool> norm_trains(const GraphNode& node);

// Returns a message that names the operators that would behave differently in training mode. Empty
// if there are none, or if some operator is in training mode: then the user chose the mode of each.
std::string why_untrainable(const ExportedGraph& graph);

}  // namespace abtrain::nn
