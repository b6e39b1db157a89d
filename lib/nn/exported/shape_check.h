// Whether an exported model and a data set have the same shapes.
#pragma once

#include <string>

#include "data/example_shape.h"
#include "nn/exported/graph.h"

namespace abtrain::nn {

// "any x 3 x 32 x 32"
std::string shown(const GraphSizes& sizes);
// Whether they are equal; a size that depends on the batch fits any.
bool fits(const GraphSizes& own, const GraphSizes& wanted);

// Checks that the model's input and output, as the file declares them, are what the data have.
// Returns the sizes of the result. Throws Error(Config), naming the file.
GraphSizes check_shape(
    const std::string& path, const ExportedGraph& graph, const data::ExampleShape& shape);

}  // namespace abtrain::nn
