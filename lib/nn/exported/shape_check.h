// Compares the shapes of an exported model with those of a data set.
#pragma once

#include <string>

#include "data/example_shape.h"
#include "nn/exported/graph.h"

namespace abtrain::nn {

// "any x 3 x 32 x 32"
std::string shown(const GraphSizes& sizes);
// True if the sizes agree. A size that depends on the batch fits any size.
bool fits(const GraphSizes& own, const GraphSizes& wanted);

// Bytes of the largest result that the file declares, for a batch of this many examples. `length`:
// the input's second size, such as tokens; 0: as at export.
double largest_result(const ExportedGraph& graph, std::int64_t examples, std::int64_t length);
// Throws c10::Error if a result of the node is much larger than the file declares, since memory is
// planned by the declared sizes.
void check_memory(
    const ExportedGraph& graph, const GraphNode& node, const std::vector<c10::IValue>& values,
    std::int64_t examples, std::int64_t length);

// Throws Error(Config), naming the file, unless the model's input and output, as the file declares
// them, fit the data. Returns the sizes that the model's result must have; nullopt stands for the
// batch size.
GraphSizes check_shape(
    const std::string& path, const ExportedGraph& graph, const data::ExampleShape& shape);

}  // namespace abtrain::nn
