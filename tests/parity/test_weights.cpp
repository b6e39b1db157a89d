// Models that `abtrain export` writes, in timm and torchvision.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "config/config.h"
#include "config/run_options.h"
#include "factored_model.h"
#include "python.h"
#include "temp_folder.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

struct Exported {
  const char* library;
  const char* model;
};

class ExportedWeights : public ::testing::TestWithParam<Exported> {};

TEST_P(ExportedWeights, LoadStrictlyMergedAndByLoadWeights) {
  const at::NoGradGuard no_grad;
  const TempFolder folder;
  config::RunOptions options;
  options.data.name = "cifar10";
  options.workers = 2;
  options.model.name = GetParam().model;
  const auto model = nn::make_model(options.model, {3, 32, 32, 10});
  model->initialize(nn::InitName::Kaiming, 1);
  int i = 0;
  for (const nn::NamedWeight& named : nn::factorable_weights(*model, {"default"})) {
    if (i++ % 3 != 0) {
      testing::factor_weight(named, 8);
    }
  }
  folder.add("config.yaml", config::to_yaml(options));
  weights::save_model(folder.file("model.safetensors"), *model);
  for (const char* form : {"factored", "merged"}) {
    const std::string command = std::string("'") + ABTRAIN_PROGRAM + "' export '" + folder.path() +
                                "' -o '" + folder.path() + "/" + form + ".safetensors' --form " +
                                form + " --names " + GetParam().library;
    ASSERT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
  }
  expect_has(
      testing::python(
          "weights.py",
          {"export", folder.path(), std::string(GetParam().library) + "/" + GetParam().model}),
      "the same model");
}

INSTANTIATE_TEST_SUITE_P(
    All, ExportedWeights,
    ::testing::Values(Exported{"timm", "vit-tiny"}, Exported{"torchvision", "vit-tiny"}),
    [](const auto& test) { return std::string(test.param.library); });

}  // namespace
}  // namespace abtrain
