// Dense networks of a given size in several shapes, because a uniformly narrowed network may be a
// weak rival of a factored one.
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
  std::string what;  // in a few words
  SameSize size = {};
  struct Layer {
    std::string name;
    std::vector<std::int64_t> sizes;  // outputs, inputs, and the kernel of a convolution
    std::int64_t parameters = 0;      // with the bias
  };
  std::vector<Layer> layers = {};  // those with a weight, in order
};
struct SmallShapes {
  std::vector<SmallShape> shapes;  // `narrow` first
  // Shapes that this network does not have, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
};
// The shapes at which the dense model of `options` has as nearly `target` parameters as same_size()
// demands:
//   narrow   Every layer is narrower by the same factor, as same_size() finds it.
//   folded   The head has the features of `narrow`, but no taps that only see copies at this size
//            of the images (model.folded_head of vgg). The layers before the head get the
//            parameters of these taps: all are wider by one factor.
//   matched  Layers that AB-training keeps dense are as wide as in `ab`. A factored layer between
//            factored layers gets sqrt(stored / dense) times its outputs, and so about as many
//            parameters as AB-training stores for it. One more factor, the same for all factored
//            layers, meets the target. Then vgg's head is folded as above. If several layers share
//            a width, as in each stage of a residual network, stored and dense are sums over these
//            layers. In transformers, the features between blocks stay as many as in `ab`, and
//            stored / dense times as many remain inside attention and MLP.
// `ab`: the configuration of AB-training, with a model of the same family; null: nothing to match.
// Leaves out a network if all of its layers are within 5 % of those of an earlier shape. Throws as
// same_size().
SmallShapes small_shapes(
    const config::RunOptions& options, std::int64_t target, const config::RunOptions* ab);
// Finds only the shape `narrow`.
SmallShape narrow_shape(const config::RunOptions& options, std::int64_t target);
// Describes a network that the user gives instead.
SmallShape shape_of(
    std::string name, std::string what, const config::RunOptions& options,
    std::vector<std::string> overrides);

// A table of the shapes' layers, and a list of what was left out.
std::string shapes_text(const SmallShapes& found);
// As a list of {"name", "what", "parameters", "set", "layers"}; each layer has "name", "sizes" and
// "parameters".
nlohmann::ordered_json shapes_json(const SmallShapes& found);

}  // namespace abtrain::plan
