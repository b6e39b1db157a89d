#include "nn/families.h"

#include <algorithm>
#include <cmath>

#include "base/named.h"
#include "nn/dropout.h"
#include "nn/linear.h"

namespace abtrain::nn {

namespace {

std::string flat_name(std::size_t index) {
  return formatted("fc{}", index);
}

Architecture softmax(const ModelOptions& options, const InputShape& shape, const Sizes&) {
  auto layers = std::make_unique<Sequential>();
  layers->add("flatten", flatten());
  add_dropout(*layers, options);
  layers->add(
      "fc", std::make_unique<Linear>(shape.channels * shape.height * shape.width, shape.classes));
  return {std::move(layers), {"fc"}};
}

// Linear layers fc1, fc2, ... with ReLUs between them. The last one, whose name
// is returned, is the classifier.
std::string add_linear_layers(
    Sequential& layers, std::int64_t in, const ModelOptions& options, const InputShape& shape) {
  std::size_t index = 1;
  for (const std::int64_t features : options.hidden) {
    const std::int64_t out = scaled(features, options);
    layers.add(flat_name(index), std::make_unique<Linear>(in, out));
    layers.add(formatted("relu{}", index), relu());
    in = out;
    ++index;
  }
  add_dropout(layers, options);
  layers.add(flat_name(index), std::make_unique<Linear>(in, shape.classes));
  return flat_name(index);
}

Architecture mlp(const ModelOptions& options, const InputShape& shape, const Sizes&) {
  auto layers = std::make_unique<Sequential>();
  layers->add("flatten", flatten());
  const std::string classifier =
      add_linear_layers(*layers, shape.channels * shape.height * shape.width, options, shape);
  return {std::move(layers), {classifier}};
}

// Convolutions conv1, conv2, ... that keep the image's size, each followed by a
// ReLU and a pooling layer that halves it; then linear layers fc1, ... as in
// mlp.
Architecture cnn(const ModelOptions& options, const InputShape& shape, const Sizes&) {
  auto layers = std::make_unique<Sequential>();
  std::int64_t in = shape.channels;
  std::int64_t height = shape.height;
  std::int64_t width = shape.width;
  std::size_t index = 1;
  for (const std::int64_t channels : options.channels) {
    ABT_CHECK(
        height >= 2 && width >= 2, Config,
        "model.channels: cnn halves the image after each convolution; expected "
        "at most {} of them for images of {}x{}, got {}",
        index - 1, shape.height, shape.width, options.channels.size());
    const std::int64_t out = scaled(channels, options);
    const std::string number = std::to_string(index++);
    layers->add("conv" + number, std::make_unique<Conv2d>(in, out, ConvOptions{}));
    layers->add("conv_relu" + number, relu());
    layers->add("pool" + number, max_pool(2, 2));
    in = out;
    height /= 2;
    width /= 2;
  }
  layers->add("flatten", flatten());
  const std::string classifier = add_linear_layers(*layers, in * height * width, options, shape);
  return {std::move(layers), {"conv1", classifier}};
}

// LeCun et al. 1998, with ReLU and max pooling; 28x28 images are padded by 2.
Architecture lenet5(const ModelOptions& options, const InputShape& shape, const Sizes&) {
  const std::int64_t padding = shape.height == 28 ? 2 : 0;
  ABT_CHECK(
      shape.height == shape.width && (shape.height == 28 || shape.height == 32), Config,
      "model lenet5 takes 28x28 or 32x32 images, not {}x{}", shape.height, shape.width);
  const auto wide = [&](std::int64_t channels) { return scaled(channels, options); };
  auto layers = std::make_unique<Sequential>();
  layers->add(
      "conv1", std::make_unique<Conv2d>(
                   shape.channels, wide(6), ConvOptions{.kernel = 5, .padding = padding}));
  layers->add("relu1", relu());
  layers->add("pool1", max_pool(2, 2));
  layers->add(
      "conv2", std::make_unique<Conv2d>(wide(6), wide(16), ConvOptions{.kernel = 5, .padding = 0}));
  layers->add("relu2", relu());
  layers->add("pool2", max_pool(2, 2));
  layers->add("flatten", flatten());
  layers->add("fc1", std::make_unique<Linear>(wide(16) * 25, wide(120)));
  layers->add("relu3", relu());
  layers->add("fc2", std::make_unique<Linear>(wide(120), wide(84)));
  layers->add("relu4", relu());
  add_dropout(*layers, options);
  layers->add("fc3", std::make_unique<Linear>(wide(84), shape.classes));
  return {std::move(layers), {"conv1", "fc3"}};
}

struct Family {
  const char* name;
  Architecture (*build)(const ModelOptions&, const InputShape&, const Sizes&);
  Sizes sizes = {};
  bool takes_text = false;
  bool takes_images = !takes_text;
};

constexpr Family kFamilies[] = {
    {"softmax", softmax},
    {"mlp", mlp},
    {"lenet5", lenet5},
    {"cnn", cnn},
    {"vgg11", vgg, {1, 1, 2, 2, 2}},
    {"vgg13", vgg, {2, 2, 2, 2, 2}},
    {"vgg16", vgg, {2, 2, 3, 3, 3}},
    {"vgg19", vgg, {2, 2, 4, 4, 4}},
    {"vgg11-small", vgg_small, {1, 1, 2, 2, 2}},
    {"vgg13-small", vgg_small, {2, 2, 2, 2, 2}},
    {"vgg16-small", vgg_small, {2, 2, 3, 3, 3}},
    {"vgg19-small", vgg_small, {2, 2, 4, 4, 4}},
    {"resnet18", resnet, {2, 2, 2, 2}},
    {"resnet34", resnet, {3, 4, 6, 3}},
    {"resnet50", resnet_of_bottlenecks, {3, 4, 6, 3}},
    {"vit-tiny", vit, {192}},
    {"vit-small", vit, {384}},
    {"vit-base", vit, {768}},
    {"gpt-nano", gpt, {4, 4, 128}, true},
    {"gpt-mini", gpt, {6, 6, 384}, true},
    {"gpt-small", gpt, {12, 12, 768}, true},
    {"exported", exported, {}, /*takes_text=*/true, /*takes_images=*/true},
};

}  // namespace

void add_dropout(Sequential& layers, const ModelOptions& options) {
  if (options.drop_rate > 0) {
    layers.add("drop", std::make_unique<Dropout>(options.drop_rate));
  }
}

std::int64_t scaled(std::int64_t count, const ModelOptions& options, std::int64_t divisor) {
  const double wanted = static_cast<double>(count) * options.width;
  return divisor * std::max<std::int64_t>(1, std::llround(wanted / static_cast<double>(divisor)));
}

bool is_small(const InputShape& shape) {
  constexpr std::int64_t kSmall = 64;
  return shape.height <= kSmall;
}

std::string renamed(std::span<const Renaming> renamings, const std::string& name) {
  for (const auto& [ours, theirs] : renamings) {
    if (name.starts_with(ours)) {
      return theirs + name.substr(std::string(ours).size());
    }
  }
  return name;
}

bool FileForm::is_transposed(const std::string& name) const {
  return std::ranges::any_of(
      transposed, [&](const std::string& glob) { return glob_match(glob, name); });
}

std::vector<std::string> model_names() {
  return names_in(kFamilies);
}

bool can_scale(const ModelOptions& options) {
  return options.name != "softmax" && options.name != "exported" &&
         (options.name != "mlp" || !options.hidden.empty());
}

Architecture build(const ModelOptions& options, const InputShape& shape) {
  const Family& family = find_named(kFamilies, options.name, "model.name");
  const bool is_text = shape.context > 0;
  ABT_CHECK(
      is_text ? family.takes_text : family.takes_images, Config,
      "model.name: {} takes {}, but the data set has {}", options.name, is_text ? "images" : "text",
      is_text ? "text" : "images");
  ABT_CHECK(
      family.takes_images || !is_text || shape.token_labels, Config,
      "model.name: {} predicts a label for each token, but the data set has one for all {} tokens "
      "of an example",
      options.name, shape.context);
  return family.build(options, shape, family.sizes);
}

}  // namespace abtrain::nn
