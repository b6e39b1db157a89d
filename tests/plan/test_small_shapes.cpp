// Shapes of dense networks, against a search and figures by hand.
#include "plan/small_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped.h"
#include "base/text.h"
#include "config/config.h"
#include "dense_networks.h"

namespace abtrain::plan {
namespace {

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

// Narrow convolutions have 5 to 38 channels. With a head of 1 x 1, a fifth of the published
// channels, 13 to 102, leaves room for two layers of about 300 features: by hand, 585,591
// parameters in convolutions and 120,000 in the head.
TEST(SmallShapes, TheFoldedVggHasWiderConvolutions) {
  const SmallShapes found = small_shapes(network("vgg16", "cifar10"), 751'288, nullptr);
  ASSERT_EQ(names_of(found), (std::vector<std::string>{"narrow", "folded"}));
  const auto narrow = outputs_of(found.shapes[0], "features.");
  EXPECT_EQ(narrow.front(), 5);
  EXPECT_EQ(narrow.back(), 38);
  const auto folded = outputs_of(found.shapes[1], "features.");
  EXPECT_EQ(folded.front(), 13);
  EXPECT_NEAR(static_cast<double>(folded.back()), 102, 4);  // so many more reach the target
  EXPECT_LE(found.shapes[1].size.parameters, 751'288 * 101 / 100);
  EXPECT_GE(found.shapes[1].size.parameters, 731'887 * 99 / 100);
  for (const char* layer : {"pre_logits.fc1", "pre_logits.fc2"}) {
    EXPECT_EQ(outputs_of(found.shapes[1], layer), outputs_of(found.shapes[0], layer));
  }
  std::int64_t sum = 0;
  for (const SmallShape::Layer& layer : found.shapes[1].layers) {
    sum += layer.parameters;
  }
  EXPECT_EQ(sum, found.shapes[1].size.parameters);  // all of it is in layers with a weight
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
          .find("the layers kept dense as they are, mlp has"),
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

}  // namespace
}  // namespace abtrain::plan
