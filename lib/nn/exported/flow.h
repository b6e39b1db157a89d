// Which values of an exported graph share memory, and which have gradients.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// For each value that is a view: the value whose memory it shares, which is no view itself.
std::map<ValueId, ValueId> view_roots(const std::vector<GraphNode>& nodes);
// That value; `id` itself if it is no view.
ValueId root_of(const std::map<ValueId, ValueId>& roots, ValueId id);

// The values that the result's gradient may reach: not those that are only read behind detach() or
// within no_grad().
std::set<ValueId> values_with_gradients(const ExportedGraph& graph);

}  // namespace abtrain::nn
