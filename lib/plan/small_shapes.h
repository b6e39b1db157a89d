// Dense networks of a given size in several shapes, as baselines for a factored network: a
// uniformly narrowed network may be a weak baseline.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/run_options.h"
#include "plan/same_size.h"

namespace abtrain::plan {

struct SmallShape {
  std::string name;  // "narrow", "folded", "matched"
  std::string what;  // a short description
  SameSize size = {};
  struct Layer {
    std::string name;
    std::vector<std::int64_t> sizes;  // outputs, inputs, and the kernel of a convolution
    std::int64_t parameters = 0;      // with the bias
  };
  std::vector<Layer> layers = {};  // the layers with a weight, in order
};
struct SmallShapes {
  std::vector<SmallShape> shapes;  // `narrow` first
  // Shapes that this network does not have, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
};
// The shapes at which the dense model of `options` has as nearly `target` parameters as same_size()
// demands:
//   narrow   Every layer is narrower by the same factor, as same_size() finds it.
//   folded   The head has the features of `narrow`, but a smaller kernel, without the taps that
//            only see copies of pixels at this image size (model.folded_head of vgg). The
//            parameters saved go to the layers before the head: all are wider by one factor.
//   matched  Layers that AB-training keeps dense are as wide as in `ab`. A factored layer between
//            factored layers gets sqrt(stored / dense) times its outputs, and so about as many
//            parameters as AB-training stores for it. Then all of these widths are scaled by one
//            more factor, to meet the target, and vgg's head is folded as above. If several layers
//            share a width, as in each stage of a residual network, stored and dense are sums over
//            these layers. In transformers, the number of features between blocks stays as in `ab`;
//            the number inside attention and MLP is multiplied by stored / dense.
// `ab`: the configuration of AB-training, with a model of the same family; null: nothing to match.
// Leaves out a shape if all of its layers are within 5 % of those of an earlier shape. Throws as
// same_size() does.
SmallShapes small_shapes(
    const config::RunOptions& options, std::int64_t target, const config::RunOptions* ab);
// Returns only the first shape of small_shapes(), `narrow`: every layer is narrower by the same
// factor.
SmallShape narrow_shape(const config::RunOptions& options, std::int64_t target);
// Describes a network that the user gives as a baseline instead.
SmallShape shape_of(
    std::string name, std::string what, const config::RunOptions& options,
    std::vector<std::string> overrides);

// A table of the shapes' layers, and a list of what was left out.
std::string shapes_text(const SmallShapes& found);
// As a list of {"name", "what", "parameters", "set", "layers"}; each layer has "name", "sizes" and
// "parameters".
nlohmann::ordered_json shapes_json(const SmallShapes& found);

}  // namespace abtrain::plan
