#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace abtrain::nn {

namespace {

constexpr Sizes kChannels = {64, 128, 256, 512, 512};

// Builds the convolutions, with max pooling after each stage. `widths` gives their widths.
std::unique_ptr<Layer> features_of(
    const Sizes& stages, bool normalizes, const ModelOptions& options,
    const data::ExampleShape& shape, Widths& widths) {
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
    for (int i = 0; i < stages[stage]; ++i) {
      const std::int64_t out =
          widths.next({scaled(kChannels[stage], options), {formatted("features.{}", index)}});
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

// Where timm's head has convolutions, torchvision has linear layers, with flat weights.
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
  constexpr std::int64_t kKernel = 7;
  Widths widths(options);
  auto layers = std::make_unique<Sequential>();
  layers->add("features", features_of(sizes, false, options, shape, widths));
  const std::int64_t in = widths.last();
  const std::int64_t hidden = widths.next({scaled(4096, options), {"pre_logits.fc1"}});
  const std::int64_t out = widths.next({scaled(4096, options), {"pre_logits.fc2"}});
  const std::int64_t kernel =
      options.folded_head ? std::min(kKernel, std::max(shape.height, shape.width) / 32) : kKernel;
  auto head = std::make_unique<Sequential>();
  head->add(
      "fc1", conv2d(in, hidden, ConvOptions{.kernel = kernel, .padding = 0, .grows_input = true}));
  head->add("act1", relu());
  add_dropout(*head, options);
  head->add("fc2", conv2d(hidden, out, ConvOptions{.kernel = 1, .padding = 0}));
  head->add("act2", relu());
  layers->add("pre_logits", std::move(head));
  layers->add("pool", average_pool());
  add_dropout(*layers, options);
  layers->add("head.fc", linear(out, shape.classes, true, normal(0.01)));
  return {
      .layers = std::move(layers),
      .keep_dense = {"features.0", "head.fc"},
      .torchvision_name = torchvision_vgg_name,
      .widths = widths.all()};
}

Architecture vgg_small(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes) {
  Widths widths(options);
  auto layers = std::make_unique<Sequential>();
  layers->add("features", features_of(sizes, true, options, shape, widths));
  layers->add("flatten", flatten());
  add_dropout(*layers, options);
  layers->add(
      "classifier",
      linear(widths.last() * (shape.height / 32) * (shape.width / 32), shape.classes));
  return {
      .layers = std::move(layers),
      .keep_dense = {"features.0", "classifier"},
      .widths = widths.all()};
}

}  // namespace abtrain::nn
