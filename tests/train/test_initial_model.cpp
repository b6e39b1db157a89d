// The weights with which all workers begin.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "temp_folder.h"
#include "train/setup.h"

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

}  // namespace
}  // namespace abtrain::train
