// The model families. A new one is a function here or in a file of its own,
// and a row in the table at the end.
#include <cmath>

#include "base/error.h"
#include "nn/model.h"

namespace abtrain::nn {

namespace {

std::string flat_name(std::size_t index) {
  return "fc" + std::to_string(index);
}

Architecture softmax(const ModelOptions&, const InputShape& shape) {
  auto layers = std::make_unique<Sequential>();
  layers->add("flatten", flatten());
  layers->add(
      "fc",
      std::make_unique<Linear>(
          shape.channels * shape.height * shape.width, shape.classes));
  return {std::move(layers), {"fc"}};
}

// Linear layers fc1, fc2, ... with ReLUs between; the last is the classifier.
Architecture mlp(const ModelOptions& options, const InputShape& shape) {
  auto layers = std::make_unique<Sequential>();
  layers->add("flatten", flatten());
  std::int64_t in = shape.channels * shape.height * shape.width;
  std::size_t index = 1;
  for (const std::int64_t width : options.hidden) {
    layers->add(flat_name(index), std::make_unique<Linear>(in, width));
    layers->add("relu" + std::to_string(index), relu());
    in = width;
    ++index;
  }
  layers->add(flat_name(index), std::make_unique<Linear>(in, shape.classes));
  return {std::move(layers), {flat_name(index)}};
}

// LeCun et al. 1998 with ReLU and max pooling; 28x28 images are padded by 2.
Architecture lenet5(const ModelOptions& options, const InputShape& shape) {
  const std::int64_t padding = shape.height == 28 ? 2 : 0;
  ABT_CHECK(
      shape.height == shape.width &&
          (shape.height == 28 || shape.height == 32),
      Config,
      "model lenet5 takes 28x28 or 32x32 images, not ",
      shape.height,
      "x",
      shape.width);
  const auto scaled = [&](std::int64_t channels) {
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(channels) * options.width));
  };
  auto layers = std::make_unique<Sequential>();
  layers->add(
      "conv1",
      std::make_unique<Conv2d>(
          shape.channels, scaled(6), ConvOptions{5, 1, padding, 1, true}));
  layers->add("relu1", relu());
  layers->add("pool1", max_pool(2));
  layers->add(
      "conv2",
      std::make_unique<Conv2d>(
          scaled(6), scaled(16), ConvOptions{5, 1, 0, 1, true}));
  layers->add("relu2", relu());
  layers->add("pool2", max_pool(2));
  layers->add("flatten", flatten());
  layers->add("fc1", std::make_unique<Linear>(scaled(16) * 25, scaled(120)));
  layers->add("relu3", relu());
  layers->add("fc2", std::make_unique<Linear>(scaled(120), scaled(84)));
  layers->add("relu4", relu());
  layers->add("fc3", std::make_unique<Linear>(scaled(84), shape.classes));
  return {std::move(layers), {"conv1", "fc3"}};
}

// VGG16 with batch norm and one linear head (the usual one for CIFAR). 0 in
// the plan is a pooling.
Architecture vgg16_small(const ModelOptions& options, const InputShape& shape) {
  ABT_CHECK(
      shape.height >= 32 && shape.width >= 32,
      Config,
      "model vgg16-small halves the image five times and needs at least 32x32, "
      "not ",
      shape.height,
      "x",
      shape.width);
  constexpr std::int64_t kPlan[] = {64,  64,  0,   128, 128, 0,
                                    256, 256, 256, 0,   512, 512,
                                    512, 0,   512, 512, 512, 0};
  auto features = std::make_unique<Sequential>();
  std::int64_t in = shape.channels;
  int index = 0;
  const auto add = [&](std::unique_ptr<Layer> layer) {
    features->add(std::to_string(index++), std::move(layer));
  };
  for (const std::int64_t channels : kPlan) {
    if (channels == 0) {
      add(max_pool(2));
      continue;
    }
    const std::int64_t out = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(channels) * options.width));
    add(std::make_unique<Conv2d>(in, out, ConvOptions{3, 1, 1, 1, false}));
    add(std::make_unique<BatchNorm2d>(out));
    add(relu());
    in = out;
  }
  auto layers = std::make_unique<Sequential>();
  layers->add("features", std::move(features));
  layers->add("flatten", flatten());
  layers->add(
      "classifier",
      std::make_unique<Linear>(
          in * (shape.height / 32) * (shape.width / 32), shape.classes));
  return {std::move(layers), {"features.0", "classifier"}};
}

struct Family {
  const char* name;
  Architecture (*build)(const ModelOptions&, const InputShape&);
};

constexpr Family kFamilies[] = {
    {"softmax", softmax},
    {"mlp", mlp},
    {"lenet5", lenet5},
    {"vgg16-small", vgg16_small},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    names.emplace_back(family.name);
  }
  return names;
}

std::unique_ptr<Model> make_model(
    const ModelOptions& options, const InputShape& shape) {
  for (const Family& family : kFamilies) {
    if (options.name == family.name) {
      return std::make_unique<Model>(family.build(options, shape));
    }
  }
  throw Error(
      ErrorKind::Config,
      str("model.name: expected one of ",
          join(model_names(), ", "),
          "; got '",
          options.name,
          "'"));
}

}  // namespace abtrain::nn
