// The weights with which all workers begin.
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "error_of.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "train/setup.h"
#include "weights/initial_model.h"

namespace abtrain::train {
namespace {

constexpr data::ExampleShape kShape{1, 4, 4, 3};

config::RunOptions small() {
  config::RunOptions options;
  options.seed = 7;
  options.model.hidden = {5};
  return options;
}

void expect_equal(const nn::Model& a, const nn::Model& b) {
  ASSERT_EQ(a.weights().size(), b.weights().size());
  for (std::size_t i = 0; i < a.weights().size(); ++i) {
    EXPECT_TRUE(at::equal(a.weights()[i].weight->merged(), b.weights()[i].weight->merged()))
        << a.weights()[i].name;
  }
}

TEST(InitialModel, IsMadeFromTheSeed) {
  const config::RunOptions options = small();
  const auto wanted = nn::make_model(options.model, kShape);
  wanted->initialize(options.model.init, options.seed);
  expect_equal(*weights::make_initial_model(options, kShape), *wanted);
}

TEST(InitialModel, NamesTheKeyOfAFileThatCannotBeUsed) {
  const TempFolder folder;
  config::RunOptions options = small();
  options.model.weights = folder / "none.safetensors";
  const auto make = [&] { weights::make_initial_model(options, kShape); };
  const std::string missing = expect_error(make, ErrorKind::MissingInput);
  EXPECT_TRUE(missing.starts_with("model.weights: ")) << missing;
  EXPECT_EQ(missing.find("model.fresh"), std::string::npos) << missing;
  options.model.weights = folder.add("torn.safetensors", "torn");
  const std::string damaged =
      expect_error(make, ErrorKind::DamagedData, {"\nmodel.fresh names layers"});
  EXPECT_TRUE(damaged.starts_with("model.weights: ")) << damaged;
}

// As another program may write it: dense and factored weights, and biases.
TEST(InitialModel, IsRefusedIfTheFileIsNotFinite) {
  const TempFolder folder;
  config::RunOptions options = small();
  options.model.weights = folder / "bad.safetensors";
  const auto write = [&](const std::string& name, float bad, bool factored) {
    const auto model = weights::make_initial_model(small(), kShape);
    std::vector<state::NamedTensor> tensors;
    for (const nn::NamedWeight& w : model->weights()) {
      if (factored) {
        tensors.push_back({w.name + ".A", at::ones({w.weight->m(), 2})});
        tensors.push_back({w.name + ".B", at::ones({2, w.weight->n()})});
      } else {
        tensors.push_back({w.name, w.weight->dense});
      }
    }
    for (const nn::NamedParameter& p : model->parameters()) {
      tensors.push_back({p.name, *p.tensor});
    }
    const auto damaged = std::ranges::find(tensors, name, &state::NamedTensor::name);
    ASSERT_NE(damaged, tensors.end());
    damaged->tensor = damaged->tensor.clone();
    damaged->tensor.select(0, 1).fill_(bad);
    state::write_safetensors(*options.model.weights, tensors, {});
  };
  const auto make = [&] { weights::make_initial_model(options, kShape); };
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (const std::string name : {"fc1.weight", "fc1.weight.B", "fc1.bias"}) {
      write(name, bad, name.ends_with(".B"));
      expect_error(
          make, ErrorKind::DamagedData,
          {"model.weights: ", "bad.safetensors: expected finite numbers in tensor 'fc1.",
           std::isnan(bad) ? "found nan" : "found infinity", "model.fresh names layers"});
    }
  }
  // A layer that begins anew does not take them.
  options.model.fresh = {"fc1"};
  make();
  write("fc1.bias", 1, false);
  options.model.fresh.clear();
  make();
}

}  // namespace
}  // namespace abtrain::train
