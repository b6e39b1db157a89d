// Finds which values of an exported graph share memory, have gradients, or are needed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "nn/exported/graph.h"

namespace abtrain::nn {

// Maps each value that is a view to the value, not a view itself, whose memory it shares.
std::map<ValueId, ValueId> view_roots(const std::vector<GraphNode>& nodes);
// The value whose memory `id` shares; `id` itself if it is not a view.
ValueId root_of(const std::map<ValueId, ValueId>& roots, ValueId id);

// For each value that is written in place, directly or through a view (`roots`: from view_roots()):
// the index of the last node that writes it.
std::map<ValueId, std::size_t> last_writes(
    const std::vector<GraphNode>& nodes, const std::map<ValueId, ValueId>& roots);

// The values that the result's gradient may reach; excludes values that are only read behind
// detach() or within no_grad().
std::set<ValueId> values_with_gradients(const ExportedGraph& graph);

// Removes the nodes that nothing needs: sizes for the exporter's checks, and counters such as batch
// norm's num_batches_tracked. Numbers the calls of each norm. Throws Error(Config) for an operator
// that changes any other tensor of the model in place. `path`: the file, for the message.
void drop_unused(ExportedGraph& graph, const std::string& path);

}  // namespace abtrain::nn
