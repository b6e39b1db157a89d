// Dense networks of a given parameter count, against a search of all sizes.
#include "plan/same_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/config.h"
#include "dense_networks.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::plan {
namespace {

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
