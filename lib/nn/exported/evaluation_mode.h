// Recognizes a model that was exported in evaluation mode, after eval(). Even in training, its
// norms never update their running statistics and its dropout drops nothing.
#pragma once

#include <string>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// Returns a message that names the operators that would behave differently in training mode. Empty
// if there are none, or if some operator is in training mode: then the user chose the mode of each.
std::string why_untrainable(const ExportedGraph& graph);

}  // namespace abtrain::nn
