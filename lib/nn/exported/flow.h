// Finds which values of an exported graph share memory, have gradients, or are needed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// Maps each value that is, or may be, a view to the value, not a view itself, whose memory it
// shares.
std::map<ValueId, ValueId> view_roots(const std::vector<GraphNode>& nodes);
// The value whose memory `id` shares; `id` itself if it is not a view.
ValueId root_of(const std::map<ValueId, ValueId>& roots, ValueId id);

// Whether the graph computes what it does in PyTorch only if its tensors lie in memory as there.
// So it is if a later node writes in place to what reshape() and the like have returned: by the
// layout, that is a view or a copy. Complex views exist for some layouts only.
bool depends_on_layout(const std::vector<GraphNode>& nodes);

// The values that the result's gradient may reach; excludes values that are only read behind
// detach() or within no_grad().
std::set<ValueId> values_with_gradients(const ExportedGraph& graph);

// Removes the nodes that nothing needs: sizes for the exporter's checks, and counters such as batch
// norm's num_batches_tracked. Numbers the calls of each norm. Throws Error(Config) for an operator
// that changes any other tensor of the model in place. `path`: the file, for the message.
void drop_unused(ExportedGraph& graph, const std::string& path);

}  // namespace abtrain::nn
