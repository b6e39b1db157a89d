#include <array>

#include "base/error.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace abtrain::nn {

namespace {

constexpr Sizes kChannels = {64, 128, 256, 512, 512};

// Max pooling follows each stage.
std::unique_ptr<Layer> features_of(
    const Sizes& stages, bool normalizes, const ModelOptions& options,
    const data::ExampleShape& shape) {
  ABT_CHECK(
      shape.height >= 32 && shape.width >= 32, Config,
      "model {} halves the image five times and needs at least 32x32, not "
      "{}x{}",
      options.name, shape.height, shape.width);
  auto features = std::make_unique<Sequential>();
  int index = 0;
  const auto add = [&](std::unique_ptr<Layer> layer) {
    features->add(std::to_string(index++), std::move(layer));
  };
  std::int64_t in = shape.channels;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::int64_t out = scaled(kChannels[stage], options);
    for (int i = 0; i < stages[stage]; ++i) {
      add(conv2d(in, out, ConvOptions{.bias = !normalizes}));
      if (normalizes) {
        add(batch_norm(out));
      }
      add(relu());
      in = out;
    }
    add(max_pool(2, 2));
  }
  return features;
}

// The head takes the place of torchvision's three linear layers.
TorchvisionName torchvision_vgg_name(const std::string& name) {
  constexpr std::array<Renaming, 3> kHead = {
      {{"pre_logits.fc1.", "classifier.0."},
       {"pre_logits.fc2.", "classifier.3."},
       {"head.fc.", "classifier.6."}}};
  const std::string theirs = renamed(kHead, name);
  return {theirs, theirs != name};
}

}  // namespace

Architecture vgg(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  const std::int64_t in = scaled(kChannels.back(), options);
  const std::int64_t hidden = scaled(4096, options);
  auto layers = std::make_unique<Sequential>();
  layers->add("features", features_of(sizes, false, options, shape));
  auto head = std::make_unique<Sequential>();
  head->add("fc1", conv2d(in, hidden, ConvOptions{.kernel = 7, .padding = 0, .grows_input = true}));
  head->add("act1", relu());
  add_dropout(*head, options);
  head->add("fc2", conv2d(hidden, hidden, ConvOptions{.kernel = 1, .padding = 0}));
  head->add("act2", relu());
  layers->add("pre_logits", std::move(head));
  layers->add("pool", average_pool());
  add_dropout(*layers, options);
  layers->add("head.fc", linear(hidden, shape.classes, true, normal(0.01)));
  return {std::move(layers), {"features.0", "head.fc"}, torchvision_vgg_name};
}

Architecture vgg_small(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  auto layers = std::make_unique<Sequential>();
  layers->add("features", features_of(sizes, true, options, shape));
  layers->add("flatten", flatten());
  add_dropout(*layers, options);
  layers->add(
      "classifier",
      linear(
          scaled(kChannels.back(), options) * (shape.height / 32) * (shape.width / 32),
          shape.classes));
  return {std::move(layers), {"features.0", "classifier"}};
}

}  // namespace abtrain::nn
