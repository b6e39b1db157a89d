// Finds a dense network with as many parameters as another model, such as a
// factored one, so that the two can be compared.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/run_options.h"

namespace abtrain::plan {

// How many parameters the dense network should have.
struct SizeTarget {
  std::int64_t parameters = 0;
  std::string source;  // "runs/my/summary.json", "the budget of my.yaml"
};
// Those that the final model of a finished run stores: both factors of each
// factored weight and all that stays dense. Throws MissingInput or DamagedData,
// naming the file.
SizeTarget size_of_run(const std::string& folder);
// Those that the model of this configuration will store; `name` is the
// configuration's, for messages. Throws Error(Config) if only the spectra can
// tell.
SizeTarget planned_size(const config::RunOptions& options, const std::string& name);

struct SameSize {
  config::RunOptions options;  // those given, with the size found
  std::int64_t parameters = 0;
  std::vector<std::string> overrides;  // "model.width=0.0815"
};
// Finds the size at which the dense model of `options` has as nearly `target`
// parameters as its layers' whole numbers of channels or features allow: never
// more than 1 % above, and the smaller of two that are equally near. Throws
// Error(Config) if `model.width` changes nothing, the target is out of its
// reach, or the network starts from a file.
SameSize same_size(const config::RunOptions& options, std::int64_t target);

// A dense network of a given size, by how its layers share the parameters.
struct SmallShape {
  std::string name;  // "narrow", "folded", "matched"
  std::string what;  // in a few words
  SameSize size = {};
  struct Layer {
    std::string name;
    std::vector<std::int64_t> sizes;  // outputs, inputs, and of a convolution its kernel
    std::int64_t parameters = 0;      // with the bias
  };
  std::vector<Layer> layers = {};  // in order, those with a weight
};
struct SmallShapes {
  std::vector<SmallShape> shapes;  // `narrow` first
  // Those that this network does not have, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
};
// The shapes at which the dense model of `options` has as nearly `target` parameters as
// same_size() demands:
//   narrow   every layer narrower by the same factor, as same_size() finds it
//   folded   first without the taps of the head that only see copies at this size of the images
//            (model.folded_head of vgg)
//   matched  Layers that AB-training keeps dense are as wide as in `ab`, and a factored layer
//            between others gets sqrt(stored / dense) of its outputs, which gives it about the
//            parameters that AB-training stores for it. One more factor, the same for all factored
//            layers, meets the target. vgg's head is folded too. A width that several layers share
//            follows from their sums: residual networks have one for each stage. In transformers,
//            the features between blocks stay those of `ab`, and stored / dense of the features
//            inside attention and MLP remain.
// `ab`: the configuration of AB-training, with a model of the same family; null: nothing to match.
// A matched network all of whose layers are within 5 % of another shape's is left out. Throws as
// same_size().
SmallShapes small_shapes(
    const config::RunOptions& options, std::int64_t target, const config::RunOptions* ab);
// What is known of a network that the user gives instead.
SmallShape shape_of(
    std::string name, std::string what, const config::RunOptions& options,
    std::vector<std::string> overrides);

// A table of the shapes' layers, and what was left out.
std::string shapes_text(const SmallShapes& found);
// As a list of {"name", "what", "parameters", "set", "layers"}; each layer has "name", "sizes" and
// "parameters".
nlohmann::ordered_json shapes_json(const SmallShapes& found);

// What was found, for people and as {"target", "source", "parameters",
// "difference", "set"}: parameters, the share of the target by which they
// differ, and the overrides.
std::string same_size_text(const SameSize& found, const SizeTarget& target);
nlohmann::ordered_json same_size_json(const SameSize& found, const SizeTarget& target);

}  // namespace abtrain::plan
