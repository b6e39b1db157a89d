// Users' own models, exported by torch.export: the loss and the gradients of a training step, the
// logits of an evaluation, and what comes out again, beside PyTorch's own.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "base/text.h"
#include "python.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

std::unique_ptr<nn::Model> exported_model(
    const std::string& path, const std::vector<std::int64_t>& input, std::int64_t classes) {
  nn::ModelOptions options;
  options.name = "exported";
  options.file = path;
  data::ExampleShape shape;
  if (input.size() == 2) {
    shape = {.channels = 0, .height = 0, .width = 0, .classes = classes, .context = input[1]};
  } else {
    shape = {.channels = input[1], .height = input[2], .width = input[3], .classes = classes};
  }
  return nn::make_model(options, shape);
}

// Compares with the exact gradients of PyTorch: within `tolerance`, and `times` what float32 moves
// them by in PyTorch itself. Returns the largest relative difference.
double compare_gradients(
    const nn::Model& model, const state::SafetensorsFile& file, double tolerance, double times) {
  std::size_t compared = 0;
  double worst = 0;
  const auto compare = [&](const std::string& tensor, const at::Tensor& gradient, bool transposed) {
    if (!file.has("grad." + tensor)) {
      EXPECT_FALSE(gradient.defined()) << tensor;
      return;
    }
    const at::Tensor wanted = file.read("grad." + tensor, file.shape("grad." + tensor));
    ASSERT_TRUE(gradient.defined()) << tensor;
    const at::Tensor found = transposed ? gradient.t() : gradient;
    // Biases before a norm have a gradient of rounding errors alone.
    const double scale =
        wanted.norm().item<double>() + 1e-3 * std::sqrt(static_cast<double>(wanted.numel()));
    const double difference = (found - wanted).norm().item<double>();
    const double rounding = file.read("rounding." + tensor, {1}).item<double>();
    EXPECT_LT(difference, tolerance * scale + times * rounding)
        << tensor << " of norm " << wanted.norm().item<double>();
    worst = std::max(worst, difference / scale);
    ++compared;
  };
  for (const nn::NamedWeight& w : model.weights()) {
    const auto& transposed = model.file_form().transposed;
    compare(w.name, w.weight->dense.grad(), std::ranges::count(transposed, w.name) > 0);
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    compare(p.name, p.tensor->grad(), false);
  }
  EXPECT_GT(compared, 4U);
  return worst;
}

// A training step and an evaluation of one model; leaves it in NAME.out.safetensors.
void expect_like_pytorch(const TempFolder& folder, const std::string& name) {
  SCOPED_TRACE(name);
  const state::SafetensorsFile file(folder.file(name + ".safetensors"));
  const auto sizes = file.shape("x");
  const bool is_text = sizes.size() == 2;
  const auto logits_sizes = file.shape("after");
  const auto model = exported_model(folder.file(name + ".pt2"), sizes, logits_sizes.back());
  model->initialize(nn::InitName::Kaiming, 1);
  const auto exact = exported_model(folder.file(name + ".pt2"), sizes, logits_sizes.back());
  exact->copy_from(*model);
  testing::require_gradients(*model);
  at::Tensor x = file.read("x", sizes);
  x = is_text ? x.to(at::kLong) : x.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor y = file.read("y", file.shape("y")).to(at::kLong);
  const at::Tensor loss =
      at::cross_entropy_loss(model->forward(x, true).flatten(0, -2), y.flatten());
  loss.backward();
  const double wanted_loss = file.read("loss", {}).item<double>();
  EXPECT_NEAR(loss.item<double>(), wanted_loss, 1e-5 * wanted_loss);

  double worst = compare_gradients(*model, file, 1e-5, 4);
  if (!is_text) {  // whose graphs make fp32 tensors; and nothing in them depends on a sign
    testing::to_dtype(*exact, at::kDouble);
    testing::require_gradients(*exact);
    at::cross_entropy_loss(exact->forward(x.to(at::kDouble), true), y).backward();
    worst = compare_gradients(*exact, file, 1e-6, 0);
  }
  const at::NoGradGuard no_grad;
  const at::Tensor after = model->forward(x, false);
  const at::Tensor wanted = file.read("after", logits_sizes);
  EXPECT_LT(
      (after - wanted).abs().max().item<double>(),
      1e-5 * std::max(1.0, wanted.abs().max().item<double>()));

  weights::save_model(folder.file(name + ".out.safetensors"), *model, {.merged = true});
  std::cout << name << ": loss " << loss.item<double>() << " (PyTorch " << wanted_loss
            << "), gradients differ by at most " << worst
            << (is_text ? " in float32; " : " in float64; ") << model->weights().size()
            << " weights, " << model->parameters().size() << " parameters\n";
}

TEST(ExportedModels, TrainAsInPyTorchAndLoadBack) {
  // Larger ones to try: resnet50 mobilenet_large vit_b_16 convnext_tiny vit_tiny mixer
  const char* const asked = std::getenv("ABTRAIN_EXPORTED");
  const std::vector<std::string> names = split_text(
      asked != nullptr ? asked : "mixed lstm gpt2 llama bert resnet18 mobilenet vit convnext", ' ');
  at::set_num_threads(1);
  const TempFolder folder;
  const auto run = [&](const std::string& what) {
    std::vector<std::string> arguments = {what, folder.path()};
    arguments.insert(arguments.end(), names.begin(), names.end());
    return testing::python("exported.py", arguments);
  };
  run("make");
  for (const std::string& name : names) {
    expect_like_pytorch(folder, name);
  }
  std::cout << run("check");
}

}  // namespace
}  // namespace abtrain
