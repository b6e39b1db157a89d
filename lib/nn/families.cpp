#include "nn/families.h"

#include <algorithm>
#include <cmath>

#include "base/mapped.h"
#include "base/named.h"
#include "base/text.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/model.h"

namespace abtrain::nn {

namespace {

Architecture softmax(const ModelOptions& options, const data::ExampleShape& shape, const Sizes&) {
  auto layers = std::make_unique<Sequential>();
  layers->add("flatten", flatten());
  add_dropout(*layers, options);
  layers->add("fc", linear(shape.channels * shape.height * shape.width, shape.classes));
  return {std::move(layers), {"fc"}};
}

struct Stage {
  std::int64_t channels;  // before scaling by `model.width`
  ConvOptions conv = {};
};

// Builds, for each stage, a convolution conv1, conv2, ..., a ReLU and a pooling layer that halves
// the image. Then linear layers fc1, fc2, ... with ReLUs in between; the last one is the
// classifier.
Architecture stack_of(
    const std::vector<Stage>& stages, const std::vector<std::int64_t>& hidden,
    const ModelOptions& options, const data::ExampleShape& shape) {
  auto layers = std::make_unique<Sequential>();
  Widths widths(options);
  std::int64_t in = shape.channels;
  std::int64_t height = shape.height;
  std::int64_t width = shape.width;
  std::size_t index = 0;
  for (const auto& [channels, conv] : stages) {
    ABT_CHECK(
        height >= 2 && width >= 2, Config,
        "model.channels: cnn halves the image after each convolution; expected "
        "at most {} of them for images of {}x{}, got {}",
        index, shape.height, shape.width, stages.size());
    ++index;
    const std::string name = formatted("conv{}", index);
    const std::int64_t out = widths.next({scaled(channels, options), {name}});
    layers->add(name, conv2d(in, out, conv));
    layers->add(formatted("conv_relu{}", index), relu());
    layers->add(formatted("pool{}", index), max_pool(2, 2));
    const std::int64_t growth = 2 * conv.padding - (conv.kernel - 1);
    in = out;
    height = (height + growth) / 2;
    width = (width + growth) / 2;
  }
  layers->add("flatten", flatten());
  in *= height * width;
  index = 1;
  for (const std::int64_t features : hidden) {
    const std::string name = formatted("fc{}", index);
    const std::int64_t out = widths.next({scaled(features, options), {name}});
    layers->add(name, linear(in, out));
    layers->add(formatted("relu{}", index), relu());
    in = out;
    ++index;
  }
  add_dropout(*layers, options);
  const std::string classifier = formatted("fc{}", index);
  layers->add(classifier, linear(in, shape.classes));
  std::vector<std::string> keep_dense(stages.empty() ? 0 : 1, "conv1");
  keep_dense.push_back(classifier);
  return {.layers = std::move(layers), .keep_dense = keep_dense, .widths = widths.all()};
}

Architecture mlp(const ModelOptions& options, const data::ExampleShape& shape, const Sizes&) {
  return stack_of({}, options.hidden, options, shape);
}

// The convolutions preserve the image's size.
Architecture cnn(const ModelOptions& options, const data::ExampleShape& shape, const Sizes&) {
  std::vector<Stage> stages;
  for (const std::int64_t channels : options.channels) {
    stages.push_back({channels});
  }
  return stack_of(stages, options.hidden, options, shape);
}

// LeCun et al. 1998, with ReLU and max pooling; 28x28 images are padded by 2 pixels.
Architecture lenet5(const ModelOptions& options, const data::ExampleShape& shape, const Sizes&) {
  ABT_CHECK(
      shape.height == shape.width && (shape.height == 28 || shape.height == 32), Config,
      "model lenet5 takes 28x28 or 32x32 images, not {}x{}", shape.height, shape.width);
  const std::int64_t padding = shape.height == 28 ? 2 : 0;
  return stack_of(
      {{6, {.kernel = 5, .padding = padding}}, {16, {.kernel = 5, .padding = 0}}}, {120, 84},
      options, shape);
}

struct Family {
  const char* name;
  Architecture (*build)(const ModelOptions&, const data::ExampleShape&, const Sizes&);
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
    {"resnet50", resnet, {3, 4, 6, 3, 1}},
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
    layers.add("drop", dropout(options.drop_rate));
  }
}

std::int64_t scaled(std::int64_t count, const ModelOptions& options, std::int64_t divisor) {
  const double wanted = static_cast<double>(count) * options.width;
  return divisor * std::max<std::int64_t>(1, std::llround(wanted / static_cast<double>(divisor)));
}

std::int64_t Widths::next(FreeWidth own) {
  if (const std::size_t i = widths_.size(); i < options_.widths.size()) {
    const std::int64_t given = options_.widths[i];
    ABT_CHECK(
        given % own.divisor == 0, Config, "model.widths: expected a multiple of {} for {}, got {}",
        own.divisor, listed(own.layers), given);
    own.count = scaled(given, options_, own.divisor);
  }
  return widths_.emplace_back(std::move(own)).count;
}

std::vector<FreeWidth> Widths::all() const {
  const auto layers = [](const FreeWidth& width) { return join(width.layers, " and "); };
  ABT_CHECK(
      options_.widths.empty() || options_.widths.size() == widths_.size(), Config,
      "model.widths: expected {} numbers for {}, those of {}; got {}", widths_.size(),
      options_.name, join(mapped(widths_, layers), ", "), options_.widths.size());
  return widths_;
}

std::vector<std::string> set_widths(
    ModelOptions& options, const std::vector<std::int64_t>& counts) {
  std::vector<std::string> sets;
  const auto set = [&](const char* key, std::vector<std::int64_t>& member, auto begin, auto end) {
    member.assign(begin, end);
    const auto text = [](std::int64_t count) { return std::to_string(count); };
    sets.push_back(formatted("model.{}=[{}]", key, join(mapped(member, text), ", ")));
  };
  const auto channels = counts.begin() + (options.name == "cnn" ? std::ssize(options.channels) : 0);
  if (options.name == "cnn") {
    set("channels", options.channels, counts.begin(), channels);
  }
  if (options.name == "cnn" || options.name == "mlp") {
    set("hidden", options.hidden, channels, counts.end());
  } else {
    set("widths", options.widths, counts.begin(), counts.end());
  }
  options.width = 1;
  sets.emplace_back("model.width=1");
  return sets;
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

std::unique_ptr<Model> make_model(const ModelOptions& options, const data::ExampleShape& shape) {
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
  auto model = std::make_unique<Model>(family.build(options, shape, family.sizes));
  model->freeze(options.frozen);
  return model;
}

}  // namespace abtrain::nn
