// Dense networks of a given parameter count, against a search of all sizes.
#include "plan/same_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped.h"
#include "base/text.h"
#include "config/config.h"
#include "error_of.h"
#include "nn/model.h"
#include "temp_folder.h"

namespace abtrain::plan {
namespace {

config::RunOptions network(const std::string& name, const std::string& data) {
  config::RunOptions o;
  o.data.name = data;
  o.model.name = name;
  o.method.name = "ddp";
  return o;
}

std::int64_t count_of(const nn::ModelOptions& model, const std::string& data) {
  const bool is_gray = data == "fashion-mnist";
  const std::int64_t side = is_gray ? 28 : 32;
  return nn::make_model(model, {is_gray ? 1 : 3, side, side, 10})->dense_parameters();
}

// Three hidden layers of h features for Fashion-MNIST.
std::int64_t mlp_parameters(std::int64_t h) {
  return (784 * h + h) + 2 * (h * h + h) + (10 * h + 10);
}

TEST(SameSize, AnMlpHasTheNearestHiddenSizes) {
  const config::RunOptions o = network("mlp", "fashion-mnist");
  for (const std::int64_t target :
       {mlp_parameters(1), std::int64_t{5'000}, std::int64_t{320'141}, mlp_parameters(1024),
        std::int64_t{30'000'000}}) {
    std::int64_t nearest = 1;
    for (std::int64_t h = 1; h < 4000; ++h) {
      const std::int64_t parameters = mlp_parameters(h);
      if (std::abs(parameters - target) < std::abs(mlp_parameters(nearest) - target) &&
          parameters <= target * 101 / 100) {
        nearest = h;
      }
    }
    const SameSize found = same_size(o, target);
    EXPECT_EQ(std::llround(1024 * found.options.model.width), nearest);
    EXPECT_EQ(found.parameters, mlp_parameters(nearest));
    EXPECT_EQ(found.options.model.hidden, o.model.hidden);
  }
  EXPECT_EQ(same_size(o, 320'141).overrides, std::vector<std::string>{"model.width=0.242"});
}

TEST(SameSize, HiddenSizesKeepTheirProportions) {
  config::RunOptions o = network("mlp", "fashion-mnist");
  o.model.hidden = {800, 400, 100};
  nn::ModelOptions half = o.model;
  half.hidden = {400, 200, 50};
  const SameSize found = same_size(o, count_of(half, "fashion-mnist"));
  EXPECT_EQ(found.options.model.width, 0.5);
  EXPECT_EQ(found.parameters, count_of(half, "fashion-mnist"));
}

TEST(SameSize, NoOtherWidthIsNearer) {
  for (const char* name : {"lenet5", "cnn", "vgg16", "vgg16-small", "resnet18", "resnet50"}) {
    const config::RunOptions o = network(name, "cifar10");
    const std::int64_t dense = count_of(o.model, "cifar10");
    for (const double ratio : {30.0, 9.1, 2.0, 0.7}) {
      const auto target = static_cast<std::int64_t>(static_cast<double>(dense) / ratio);
      const SameSize found = same_size(o, target);
      EXPECT_EQ(found.parameters, count_of(found.options.model, "cifar10"));
      EXPECT_LE(found.parameters, target * 101 / 100) << name << ratio;
      const std::int64_t difference = std::abs(found.parameters - target);
      for (int k = 1; k < 400; ++k) {
        nn::ModelOptions other = o.model;
        other.width = found.options.model.width * (1 + (k - 200) / 4000.0);
        const std::int64_t parameters = count_of(other, "cifar10");
        EXPECT_TRUE(parameters > target * 101 / 100 || std::abs(parameters - target) >= difference)
            << name << " " << ratio << " " << other.width;
      }
    }
  }
}

// Rotary positions turn pairs of a head's features.
TEST(SameSize, LanguageModelsKeepTheirHeads) {
  for (const nn::Positions positions : {nn::Positions::Learned, nn::Positions::Rotary}) {
    config::RunOptions o = network("gpt-nano", "gcide");
    o.data.context = 64;
    o.model.positions = positions;
    const SameSize found = same_size(o, 280'000);
    EXPECT_LE(found.parameters, 280'000 * 101 / 100);
    EXPECT_GT(found.parameters, 200'000);
  }
}

// What a user pastes gives the network that was found.
TEST(SameSize, OverridesGiveTheNetwork) {
  for (const char* name : {"mlp", "cnn", "vgg11-small", "resnet34"}) {
    const config::RunOptions o = network(name, "cifar10");
    const SameSize found = same_size(o, count_of(o.model, "cifar10") / 7);
    std::vector<std::string> sets = {
        "workers=2", "data.name=cifar10", std::string("model.name=") + name};
    sets.insert(sets.end(), found.overrides.begin(), found.overrides.end());
    const nn::ModelOptions read = config::read_config("", sets).model;
    EXPECT_EQ(read.width, found.options.model.width) << name;
    EXPECT_EQ(read.hidden, found.options.model.hidden) << name;
    EXPECT_EQ(count_of(read, "cifar10"), found.parameters) << name;
  }
}

TEST(SameSize, WidthsAreShort) {
  config::RunOptions o = network("vgg16-small", "cifar10");
  o.model.width = 0.5;
  const std::int64_t parameters = count_of(o.model, "cifar10");
  for (const double width : {1.0, 0.3, 2.0}) {
    o.model.width = width;  // that of the configuration does not matter
    const SameSize found = same_size(o, parameters);
    EXPECT_EQ(found.overrides, std::vector<std::string>{"model.width=0.5"});
    EXPECT_EQ(found.parameters, parameters);
  }
}

TEST(SameSize, SaysWhatCannotBe) {
  const auto expect = [](const config::RunOptions& o, std::int64_t target,
                         const std::string& message) {
    expect_error([&] { same_size(o, target); }, ErrorKind::Config, {message});
  };
  expect(network("softmax", "cifar10"), 10'000, "softmax has no layer to widen");
  config::RunOptions mlp = network("mlp", "fashion-mnist");
  expect(mlp, 100, "mlp has 809 parameters; expected a target of at least");
  mlp.model.hidden = {4};
  expect(mlp, 1'000'000'000'000, "has 3,180,010 parameters; expected a target");
  mlp.model.weights = "start.safetensors";
  expect(mlp, 10'000, "got 'start.safetensors'");
  mlp.model = {};
  mlp.model.hidden = {};
  expect(mlp, 10'000, "mlp has no layer to widen");
}

std::vector<std::string> names_of(const SmallShapes& found) {
  return mapped(found.shapes, [](const SmallShape& shape) { return shape.name; });
}

// The outputs of the layers whose names begin like this.
std::vector<std::int64_t> outputs_of(const SmallShape& shape, const std::string& begin) {
  std::vector<std::int64_t> outputs;
  for (const SmallShape::Layer& layer : shape.layers) {
    if (layer.name.starts_with(begin)) {
      outputs.push_back(layer.sizes[0]);
    }
  }
  return outputs;
}

config::RunOptions factored(const config::RunOptions& dense, double ratio, double dense_share) {
  config::RunOptions ab = dense;
  ab.method.name = "ab";
  ab.method.dense_share = dense_share;
  ab.method.rank.rule = linalg::RankRuleName::Ratio;
  ab.method.rank.ratio = ratio;
  return ab;
}

// The widths and the 731,887 parameters were found by hand beforehand.
TEST(SmallShapes, TheFoldedVggHasWiderConvolutions) {
  const SmallShapes found = small_shapes(network("vgg16", "cifar10"), 751'288, nullptr);
  ASSERT_EQ(names_of(found), (std::vector<std::string>{"narrow", "folded"}));
  const auto narrow = outputs_of(found.shapes[0], "features.");
  EXPECT_EQ(narrow.front(), 5);
  EXPECT_EQ(narrow.back(), 38);
  const auto folded = outputs_of(found.shapes[1], "features.");
  EXPECT_EQ(folded.front(), 13);
  EXPECT_EQ(folded.back(), 102);
  EXPECT_EQ(found.shapes[1].size.parameters, 731'887);
  EXPECT_EQ(
      outputs_of(found.shapes[1], "pre_logits.fc1"), outputs_of(found.shapes[1], "pre_logits.fc2"));
  std::int64_t sum = 0;
  for (const SmallShape::Layer& layer : found.shapes[1].layers) {
    sum += layer.parameters;
  }
  EXPECT_EQ(sum, 731'887);  // all of it is in layers with a weight
}

// Against every factor of a fine grid.
TEST(SmallShapes, AMatchedMlpFollowsWhatIsStored) {
  config::RunOptions o = network("mlp", "fashion-mnist");
  o.model.hidden = {300, 400, 50};
  config::RunOptions ab = o;
  ab.method.name = "ab";
  ab.method.keep_dense = {"default", "fc1"};
  ab.method.rank.rule = linalg::RankRuleName::Fixed;
  ab.method.rank.rank = 7;
  const std::int64_t stored = 785 * 300 + 7 * 700 + 400 + 7 * 450 + 50 + 51 * 10;
  EXPECT_EQ(planned_size(ab, "ab").parameters, stored);
  const auto sized = [](std::int64_t h1, std::int64_t h2, std::int64_t h3) {
    return 785 * h1 + (h1 + 1) * h2 + (h2 + 1) * h3 + (h3 + 1) * 10;
  };
  std::vector<std::int64_t> wanted;
  for (int k = 1; k < 20'000; ++k) {
    const auto width = [&](double shares, double outputs) {
      return std::max<std::int64_t>(1, std::llround(k / 10'000.0 * std::sqrt(shares) * outputs));
    };
    const std::int64_t h2 = width(7 * 700 / (300.0 * 400), 400);
    const std::int64_t h3 = width(7 * 450 / (400.0 * 50), 50);
    if (sized(300, h2, h3) <= stored) {
      wanted = {300, h2, h3};
    }
  }
  const SmallShapes found = small_shapes(o, stored, &ab);
  ASSERT_EQ(names_of(found), (std::vector<std::string>{"narrow", "matched"}));
  const SmallShape& matched = found.shapes[1];
  const std::vector<std::int64_t>& hidden = matched.size.options.model.hidden;
  EXPECT_EQ(hidden[0], 300);
  EXPECT_NEAR(static_cast<double>(hidden[1]), static_cast<double>(wanted[1]), 1);
  EXPECT_NEAR(static_cast<double>(hidden[2]), static_cast<double>(wanted[2]), 1);
  EXPECT_EQ(matched.size.parameters, sized(hidden[0], hidden[1], hidden[2]));
  EXPECT_EQ(
      matched.size.overrides,
      (std::vector<std::string>{
          formatted("model.hidden=[300, {}, {}]", hidden[1], hidden[2]), "model.width=1"}));
}

TEST(SmallShapes, LayersThatStayDenseKeepTheirWidth) {
  config::RunOptions o = network("vgg16", "cifar10");
  o.model.width = 0.5;
  const config::RunOptions ab = factored(o, 44, 0.002);
  const std::int64_t target = planned_size(ab, "ab").parameters;
  const SmallShapes found = small_shapes(o, target, &ab);
  ASSERT_EQ(names_of(found), (std::vector<std::string>{"narrow", "folded", "matched"}));
  const auto channels = outputs_of(found.shapes[2], "features.");
  // 9,216 + 18,432 + 36,864 of 34 million parameters: the first four convolutions.
  EXPECT_EQ(
      (std::vector<std::int64_t>(channels.begin(), channels.begin() + 4)),
      (std::vector<std::int64_t>{32, 32, 64, 64}));
  EXPECT_LT(channels[4], 64);
  EXPECT_TRUE(found.shapes[2].size.options.model.folded_head);
}

TEST(SmallShapes, TransformersKeepTheFeaturesBetweenBlocks) {
  for (const char* name : {"vit-tiny", "gpt-nano"}) {
    config::RunOptions o = network(name, "cifar10");
    if (o.model.name == "gpt-nano") {
      o = network(name, "gcide");
      o.data.context = 64;
    }
    const config::RunOptions ab = factored(o, 8, 0);
    const SmallShapes found = small_shapes(o, planned_size(ab, "ab").parameters, &ab);
    ASSERT_EQ(names_of(found), (std::vector<std::string>{"narrow", "matched"})) << name;
    const auto& widths = found.shapes[1].size.options.model.widths;
    const std::int64_t features = o.model.name == "gpt-nano" ? 128 : 192;
    const auto& layers = found.shapes[1].layers;
    const auto end = std::ranges::find_if(layers, [](const SmallShape::Layer& layer) {
      return layer.name.ends_with("attn.proj") || layer.name.ends_with("attn.c_proj");
    });
    ASSERT_NE(end, layers.end());
    EXPECT_EQ(end->sizes, (std::vector<std::int64_t>{features, widths[0]})) << name;
    EXPECT_LT(widths[0], features / 4) << name;
    EXPECT_LT(widths[1], features) << name;
  }
}

TEST(SmallShapes, OverridesGiveTheNetworkAndItsSize) {
  for (const char* name :
       {"mlp", "cnn", "lenet5", "vgg11", "vgg16-small", "resnet18", "resnet50", "vit-tiny"}) {
    const config::RunOptions o = network(name, "cifar10");
    const config::RunOptions ab = factored(o, 6, 0.1);
    const std::int64_t target = planned_size(ab, "ab").parameters;
    const SmallShapes found = small_shapes(o, target, &ab);
    EXPECT_EQ(found.shapes.size() + found.left_out.size(), 3U) << name;
    for (const SmallShape& shape : found.shapes) {
      std::vector<std::string> sets = {
          "workers=2", "data.name=cifar10", std::string("model.name=") + name, "model.width=2"};
      sets.insert(sets.end(), shape.size.overrides.begin(), shape.size.overrides.end());
      const nn::ModelOptions read = config::read_config("", sets).model;
      EXPECT_EQ(count_of(read, "cifar10"), shape.size.parameters) << name << shape.name;
      EXPECT_LE(shape.size.parameters, target * 101 / 100) << name << shape.name;
      EXPECT_GE(shape.size.parameters, target * 90 / 100) << name << shape.name;
    }
  }
}

TEST(SmallShapes, SayWhyOneIsLeftOut) {
  const auto reason = [](const SmallShapes& found, const std::string& name) {
    const auto at =
        std::ranges::find(found.left_out, name, [](const auto& one) { return one.first; });
    return at == found.left_out.end() ? "" : at->second;
  };
  config::RunOptions o = network("mlp", "fashion-mnist");
  const config::RunOptions ab = factored(o, 6, 0);
  const SmallShapes found = small_shapes(o, 500'000, &ab);
  EXPECT_EQ(reason(found, "folded"), "no tap of the head sees only copies");
  EXPECT_EQ(reason(found, "matched"), "all of its layers are within 5 % of those of narrow");
  EXPECT_EQ(
      reason(small_shapes(o, 500'000, nullptr), "matched"),
      "there is no AB-training of this network to match");
  config::RunOptions kept = ab;
  kept.method.keep_dense = {"default", "fc1"};
  EXPECT_NE(
      reason(small_shapes(o, 500'000, &kept), "matched")
          .find("and the others as they are, mlp has"),
      std::string::npos);
  config::RunOptions unknown = ab;
  unknown.method.rank.rule = linalg::RankRuleName::Sigma;
  EXPECT_NE(
      reason(small_shapes(o, 500'000, &unknown), "matched").find("spectra"), std::string::npos);
  const std::string text = shapes_text(found);
  EXPECT_NE(text.find("matched             not here: all of"), std::string::npos) << text;
  EXPECT_NE(text.find("  fc1    784 to "), std::string::npos) << text;
  const nlohmann::ordered_json json = shapes_json(found);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["name"], "narrow");
  EXPECT_EQ(json[0]["layers"][0]["sizes"][1], 784);
  EXPECT_EQ(json[0]["set"].size(), 1U);
}

TEST(SizeTarget, OfAConfiguration) {
  config::RunOptions o = network("mlp", "fashion-mnist");
  o.model.hidden = {100, 50};
  EXPECT_EQ(planned_size(o, "o").parameters, 784 * 100 + 100 * 50 + 50 * 10 + 160);
  o.method.name = "ab";  // fc3, the classifier, stays dense
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 3;
  EXPECT_EQ(planned_size(o, "o").parameters, 3 * 884 + 3 * 150 + 50 * 10 + 160);
  EXPECT_EQ(planned_size(o, "my.yaml").source, "planned for my.yaml");
  o.method.rank.rule = linalg::RankRuleName::Budget;
  o.method.rank.ratio = 4;
  EXPECT_EQ(planned_size(o, "o").parameters, 84'060 / 4);
  EXPECT_EQ(planned_size(o, "my.yaml").source, "the budget of my.yaml");
  o.method.rank.rule = linalg::RankRuleName::Sigma;
  expect_error(
      [&] { planned_size(o, "my.yaml"); }, ErrorKind::Config, {"the folder of a finished run"});
}

TEST(SizeTarget, OfARun) {
  const TempFolder folder;
  expect_error([&] { size_of_run(folder.path()); }, ErrorKind::MissingInput);
  folder.add("summary.json", R"({"parameters": {"dense": 500}})");
  expect_error([&] { size_of_run(folder.path()); }, ErrorKind::DamagedData, {"stored"});
  folder.add("summary.json", R"({"parameters": {"stored": 320141}})");
  const SizeTarget target = size_of_run(folder.path());
  EXPECT_EQ(target.parameters, 320'141);
  EXPECT_EQ(target.source, folder.file("summary.json"));
}

TEST(SameSize, TextAndJson) {
  const SizeTarget target{320'141, "runs/my/summary.json"};
  const SameSize found = same_size(network("mlp", "fashion-mnist"), 320'141);
  const std::string text = same_size_text(found, target);
  for (const char* part :
       {"320,141 parameters, runs/my/summary.json", "320,674 parameters, 0.17 % more",
        "--set model.width=0.242\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const nlohmann::ordered_json json = same_size_json(found, target);
  EXPECT_EQ(json["target"], 320'141);
  EXPECT_EQ(json["source"], "runs/my/summary.json");
  EXPECT_EQ(json["parameters"], 320'674);
  EXPECT_NEAR(json["difference"].get<double>(), 533.0 / 320'141, 1e-12);
  EXPECT_EQ(json["set"][0], "model.width=0.242");
}

}  // namespace
}  // namespace abtrain::plan
