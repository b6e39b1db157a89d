// The model zoo beside torchvision's and timm's: their weights come in under
// their names, logits and gradients agree, and our file loads there strictly.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "python.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

struct ZooCase {
  nn::TensorNames library;
  const char* model;
  std::int64_t side;
  std::int64_t classes;
  bool qkv_bias = true;
  double width = 1;
};

constexpr std::int64_t kZooBatch = 2;

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

class Zoo : public ::testing::TestWithParam<ZooCase> {
 protected:
  std::unique_ptr<nn::Model> fresh() const {
    const ZooCase& c = GetParam();
    nn::ModelOptions options;
    options.name = c.model;
    options.qkv_bias = c.qkv_bias;
    options.width = c.width;
    options.stem = nn::StemName::ImageNet;
    return nn::make_model(options, {3, c.side, c.side, c.classes});
  }
  std::string name() const {
    return nn::name_of(GetParam().library) + "/" + GetParam().model;
  }
  at::Tensor batch(const char* which, std::vector<std::int64_t> sizes) const {
    return state::SafetensorsFile(folder_.file("batch.safetensors")).read(which, sizes);
  }
  at::Tensor images() const {
    const ZooCase& c = GetParam();
    return batch("images", {kZooBatch, 3, c.side, c.side})
        .contiguous(at::MemoryFormat::ChannelsLast);
  }
  // Logits of a training step; the gradients stay on the parameters.
  at::Tensor step(nn::Model& model, const at::Tensor& images) const {
    testing::require_gradients(model);
    const at::Tensor logits = model.forward(images, true);
    at::cross_entropy_loss(logits, at::arange(kZooBatch).remainder(GetParam().classes)).backward();
    return logits;
  }
  void expect_logits(const at::Tensor& logits, const char* which) const {
    const at::Tensor want = batch(which, {kZooBatch, GetParam().classes});
    EXPECT_LT(largest(logits - want), 1e-4 * std::max(1.0, largest(want))) << which;
  }
  // Within `tolerance` of the exact gradient, and `times` what float32 moves it
  // by in PyTorch itself (a ReLU on the other side of zero, norms in a row).
  void expect_gradients(nn::Model& model, double tolerance, double times) {
    if (!gradients_) {
      gradients_ = fresh();
      weights::load_model(
          folder_.file("gradients.safetensors"), *gradients_,
          model.buffers().empty() ? std::vector<std::string>{}
                                  : std::vector<std::string>{"*.running_*"});
    }
    const state::SafetensorsFile rounding(folder_.file("rounding.safetensors"));
    const auto compare = [&](const std::string& tensor, const at::Tensor& got,
                             const at::Tensor& want) {
      const std::string theirs = GetParam().library == nn::TensorNames::Torchvision
                                     ? model.torchvision_name(tensor).name
                                     : tensor;
      EXPECT_LT(
          (got - want).norm().item<double>(), tolerance * want.norm().item<double>() +
                                                  times * rounding.read(theirs, {1}).item<double>())
          << tensor << " of norm " << want.norm().item<double>();
    };
    testing::each_gradient(model, *gradients_, compare);
  }
  TempFolder folder_;
  std::unique_ptr<nn::Model> gradients_;  // exact ones, as a model's values
};

TEST_P(Zoo, AgreesWithItsOriginal) {
  testing::python("zoo.py", {"make", folder_.path(), name()});
  const auto model = fresh();
  weights::load_model(folder_.file("theirs.safetensors"), *model);
  weights::save_model(folder_.file("ours.safetensors"), *model, {.names = GetParam().library});
  const auto exact = fresh();
  exact->copy_from(*model);

  expect_logits(step(*model, images()), "logits");
  expect_gradients(*model, 1e-3, 4);
  {
    // Also the running statistics that the training step has left.
    const at::NoGradGuard no_grad;
    expect_logits(model->forward(images(), false), "after");
  }
  testing::to_dtype(*exact, at::kDouble);
  step(*exact, images().to(at::kDouble));
  expect_gradients(*exact, 1e-6, 0);

  expect_has(testing::python("zoo.py", {"check", folder_.path(), name()}), " tensors agree");
}

std::string case_name(const ::testing::TestParamInfo<ZooCase>& test) {
  std::string name = test.param.model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Timm, Zoo,
    ::testing::Values(
        ZooCase{nn::TensorNames::Timm, "vgg16", 32, 10, true, 0.25},
        ZooCase{nn::TensorNames::Timm, "resnet18", 64, 1000},
        ZooCase{nn::TensorNames::Timm, "resnet34", 64, 1000},
        ZooCase{nn::TensorNames::Timm, "vit-tiny", 32, 10},
        ZooCase{nn::TensorNames::Timm, "vit-small", 224, 1000, false, 0.484}),
    case_name);
INSTANTIATE_TEST_SUITE_P(
    Torchvision, Zoo,
    ::testing::Values(
        ZooCase{nn::TensorNames::Torchvision, "vgg13", 32, 10, true, 0.25},
        ZooCase{nn::TensorNames::Torchvision, "resnet50", 96, 1000},
        ZooCase{nn::TensorNames::Torchvision, "vit-tiny", 32, 10}),
    case_name);

}  // namespace
}  // namespace abtrain
