#include "weights/export.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/options_apply.h"
#include "config/config.h"
#include "decompose_files.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "weight_file.h"
#include "weights/model_file.h"

namespace abtrain::weights {
namespace {

constexpr auto kTimm = nn::TensorNames::Timm;
constexpr auto kTorchvision = nn::TensorNames::Torchvision;

class Export : public ::testing::Test {
 protected:
  Export() {
    config_.data.name = "cifar10";
    config_.model.name = "vgg11";
    config_.model.width = 0.0625;
    model_ = fresh();
    model_->initialize(nn::InitName::Kaiming, 1);
    factor_every_other(*model_);
    save_model(folder_.file("model.safetensors"), *model_);
    options_.model.folder = folder_.path();
    options_.output = folder_.file("out");
  }
  std::unique_ptr<nn::Model> fresh() const {
    return nn::make_model(config_.model, {3, 32, 32, 10});
  }
  // Largest difference of a weight, after a strict load.
  double difference() const {
    const auto other = fresh();
    load_model(options_.output, *other);
    double largest = 0;
    for (std::size_t i = 0; i < model_->weights().size(); ++i) {
      const at::Tensor d =
          other->weights()[i].weight->merged() - model_->weights()[i].weight->merged();
      largest = std::max(largest, d.abs().max().item<double>());
    }
    return largest;
  }
  const at::NoGradGuard no_grad_;
  TempFolder folder_;
  config::RunOptions config_;
  std::unique_ptr<nn::Model> model_;
  ExportOptions options_;
};

TEST_F(Export, KeepsWhatTheFileSaysOfTheModel) {
  save_model(
      folder_.file("model.safetensors"), *model_,
      {.about = {{"mean", "0.5,0.25,1"}, {"classes", "10"}}});
  for (const bool merged : {false, true}) {
    options_.form = merged ? ExportForm::Merged : ExportForm::Factored;
    export_run(config_, options_);
    const state::SafetensorsFile file(options_.output);
    EXPECT_EQ(file.metadata("mean"), "0.5,0.25,1");
    EXPECT_EQ(file.metadata("classes"), "10");
  }
}

TEST_F(Export, EveryFormNameAndDtypeHoldsTheSameModel) {
  for (const bool merged : {false, true}) {
    for (const std::optional<nn::TensorNames> names :
         {std::optional<nn::TensorNames>(), {kTimm}, {kTorchvision}}) {
      for (const char* dtype : {"fp32", "fp16", "bf16"}) {
        options_.form = merged ? ExportForm::Merged : ExportForm::Factored;
        options_.names = names;
        options_.dtype = dtype;
        export_run(config_, options_);
        const state::SafetensorsFile file(options_.output);
        const bool theirs = names == kTorchvision;
        EXPECT_EQ(file.has("classifier.0.bias"), theirs);
        EXPECT_EQ(file.has("pre_logits.fc1.bias"), !theirs);
        EXPECT_EQ(file.has("features.3.weight"), merged);
        EXPECT_EQ(file.has("features.3.weight.A"), !merged);
        for (const state::StoredTensor& t : file.tensors()) {
          EXPECT_EQ(t.dtype, state::stored_dtype(dtype)) << t.name;
        }
        const double d = difference();
        if (dtype == std::string("fp32")) {
          EXPECT_EQ(d, 0);
        } else {
          EXPECT_GT(d, 0);
          EXPECT_LT(d, 0.02);
        }
      }
    }
  }
}

TEST_F(Export, NamesAreThoseOfTheRunByDefault) {
  config_.model.names = kTorchvision;
  export_run(config_, options_);
  EXPECT_TRUE(state::SafetensorsFile(options_.output).has("classifier.0.bias"));
}

TEST_F(Export, TakesAnyFileOfTheRun) {
  save_model(folder_.file("model.sparse.safetensors"), *model_, {.sparse = true});
  options_.model.file = "model.sparse.safetensors";
  export_run(config_, options_);
  EXPECT_EQ(difference(), 0);
  options_.model.file = "no.safetensors";
  expect_error([&] { export_run(config_, options_); }, ErrorKind::MissingInput);
}

// The folder may be on another machine; its classes are in the model.
TEST_F(Export, ImagesNeedNotBeThere) {
  config_.data.name = "image-folder";
  config_.data.image_size = 32;
  config_.data.root = "/no/such/folder";
  for (const nn::TensorNames names : {kTimm, kTorchvision}) {
    save_model(folder_.file("model.safetensors"), *model_, {.names = names});
    export_run(config_, options_);
    EXPECT_EQ(difference(), 0);
  }
}

TEST_F(Export, NumbersBeyondADtypeAreNamed) {
  *model_->parameters().front().tensor += 1e6;
  save_model(folder_.file("model.safetensors"), *model_);
  options_.dtype = "fp16";
  expect_error(
      [&] { export_run(config_, options_); }, ErrorKind::Diverged,
      {"'" + model_->parameters().front().name + "' has numbers"});
  options_.output = folder_.file("model.safetensors");
  expect_error([&] { export_run(config_, options_); }, ErrorKind::Usage);
}

// Factors that are finite, and a product that is not; or not even those.
TEST_F(Export, NumbersThatAreNotFiniteAreNotWritten) {
  const auto weights = model_->weights();
  const auto factored =
      *std::ranges::find_if(weights, [](const auto& w) { return w.weight->is_factored(); });
  factored.weight->inner.fill_(1e30F);
  factored.weight->outer.fill_(1e30F);
  save_model(folder_.file("model.safetensors"), *model_);
  options_.form = ExportForm::Merged;
  expect_error([&] { export_run(config_, options_); }, ErrorKind::Diverged);
  EXPECT_FALSE(std::filesystem::exists(options_.output));
  factored.weight->inner.fill_(std::numeric_limits<float>::quiet_NaN());
  const auto expect_none = [&](const ModelForm& form, const std::string& name) {
    expect_error(
        [&] { save_model(folder_.file("broken"), *model_, form); }, ErrorKind::Diverged,
        {"tensor '" + name, "numbers that are not finite"});
    EXPECT_FALSE(std::filesystem::exists(folder_.file("broken")));
  };
  expect_none({}, factored.name);
  // Of a weight that is stored as its nonzero values.
  const auto dense =
      *std::ranges::find_if(weights, [](const auto& w) { return !w.weight->is_factored(); });
  factored.weight->inner.fill_(1);
  at::Tensor number = dense.weight->dense.zero_();
  while (number.dim() > 0) {
    number = number[0];
  }
  number.fill_(std::numeric_limits<float>::infinity());
  expect_none({.sparse = true}, dense.name);
}

}  // namespace
}  // namespace abtrain::weights
