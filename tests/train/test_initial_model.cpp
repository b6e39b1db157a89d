// The weights with which all workers begin.
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "error_of.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "train/setup.h"
#include "weights/model_file.h"

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
  expect_equal(*make_initial_model(options, kShape), *wanted);
}

TEST(InitialModel, NamesTheKeyOfAFileThatCannotBeUsed) {
  const TempFolder folder;
  config::RunOptions options = small();
  options.model.weights = folder / "none.safetensors";
  const auto make = [&] { make_initial_model(options, kShape); };
  const std::string missing = expect_error(make, ErrorKind::MissingInput);
  EXPECT_TRUE(missing.starts_with("model.weights: ")) << missing;
  EXPECT_EQ(missing.find("model.fresh"), std::string::npos) << missing;
  options.model.weights = folder.add("torn.safetensors", "torn");
  const std::string damaged =
      expect_error(make, ErrorKind::DamagedData, {"\nmodel.fresh names layers"});
  EXPECT_TRUE(damaged.starts_with("model.weights: ")) << damaged;
}

// Dense and factored weights, biases; also what half precision makes of a large number.
TEST(InitialModel, IsRefusedIfTheFileIsNotFinite) {
  const TempFolder folder;
  config::RunOptions options = small();
  const auto expect_refused = [&](const std::string& name, float bad, bool factored) {
    const auto model = make_initial_model(small(), kShape);
    if (factored) {
      nn::Weight& w = *model->weights()[0].weight;
      w.set_factors({at::ones({w.m(), 2}), at::ones({2, w.n()})});
    }
    const std::string path = folder / "bad.safetensors";
    options.model.weights = path;
    weights::save_model(path, *model, {});
    const state::SafetensorsFile file(path);
    std::vector<state::NamedTensor> tensors;
    for (const state::StoredTensor& stored : file.tensors()) {
      tensors.push_back({stored.name, file.load(stored)});
      if (stored.name.starts_with(name)) {
        tensors.back().tensor.select(0, 1).fill_(bad);
      }
    }
    state::write_safetensors(path, tensors, file.metadata());
    expect_error(
        [&] { make_initial_model(options, kShape); }, ErrorKind::DamagedData,
        {"model.weights: ", "bad.safetensors: expected finite numbers in tensor '" + name + "'",
         std::isnan(bad) ? "found nan" : "found infinity", "model.fresh names layers"});
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, -std::numeric_limits<float>::infinity()}) {
    expect_refused("fc1.weight", bad, false);
    expect_refused("fc1.weight", bad, true);
    expect_refused("fc1.bias", bad, false);
  }
  // A layer that begins anew does not take them.
  options.model.fresh = {"fc1"};
  make_initial_model(options, kShape);
}

}  // namespace
}  // namespace abtrain::train
