// Recognizes a model that was exported in evaluation mode, after eval(). Its norms never update
// their running statistics, and its dropout drops nothing, even in training.
#pragma once

#include <string>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// If so, names the operators that would do something else in training mode. Empty if there are
// none, and if another operator is in training mode: then the user has chosen what is frozen.
std::string why_untrainable(const ExportedGraph& graph);

}  // namespace abtrain::nn
