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

// True if the graph's results depend on the memory layout of its tensors, so that they must have
// PyTorch's. This happens if a node writes in place to the result of reshape() or the like: the
// layout decides whether that result is a view or a copy. Complex views need certain layouts, too.
bool depends_on_layout(const std::vector<GraphNode>& nodes);

// The values that the result's gradient may reach; excludes values that are only read behind
// detach() or within no_grad().
std::set<ValueId> values_with_gradients(const ExportedGraph& graph);

// Removes the nodes that nothing needs: sizes for the exporter's checks, and counters such as batch
// norm's num_batches_tracked. Throws Error(Config) for an operator that changes any other tensor of
// the model in place. `path`: the file, for the message.
void drop_unused(ExportedGraph& graph, const std::string& path);

// Sets norm_call and norm_calls of all nodes.
void number_norm_calls(ExportedGraph& graph);

}  // namespace abtrain::nn
