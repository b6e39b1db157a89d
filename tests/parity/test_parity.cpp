// Training steps beside PyTorch's, from the same weights on the same batches:
// this program trains and writes what it did, parity.py trains the same with
// torch.nn and torch.optim and compares every tensor.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "factored_model.h"
#include "methods/average.h"
#include "optim/optimizer.h"
#include "python.h"
#include "temp_folder.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

struct ParityCase {
  std::string name;
  std::string model;
  double width;
  data::ExampleShape shape;
  std::string optimizer;
  bool nesterov;
  double clip_norm;
  double label_smoothing;
  std::string trains;  // "dense", or the factor "A" or "B" and all that is dense
  // One step through thirteen batch norms and ReLUs: after three, weights that
  // differed by 1e-5 have gone a third of their way apart, in float64 as well.
  int steps;
  optim::MuonScale scale = optim::MuonScale::MatchRms;
};

constexpr std::int64_t kParityBatch = 32;
constexpr double kRate = 3e-3;
constexpr double kFactorScale = 2;
// Large enough that the rounding of a tiny gradient does not decide its step.
constexpr double kEps = 1e-3;

nn::Factor other(nn::Factor factor) {
  return factor == nn::Factor::A ? nn::Factor::B : nn::Factor::A;
}

// What is trained; the other factors get no gradient.
std::vector<optim::ParameterRef> trained(nn::Model& model, const std::string& trains) {
  std::vector<optim::ParameterRef> refs;
  if (trains != "dense") {
    const nn::Factor own = trains == "A" ? nn::Factor::A : nn::Factor::B;
    for (const nn::NamedWeight& named : model.weights()) {
      if (named.weight->is_factored()) {
        refs.push_back({named.name + "." + trains, &named.weight->factor(own), true, true});
        named.weight->factor(other(own)).set_requires_grad(false);
      }
    }
  }
  const auto dense = methods::dense_parameters(model);
  refs.insert(refs.end(), dense.begin(), dense.end());
  return refs;
}

struct Batches {
  at::Tensor images;  // steps x kParityBatch x C x H x W
  at::Tensor labels;
};

Batches make_batches(const data::ExampleShape& shape, int steps) {
  Batches b{
      at::empty({steps, kParityBatch, shape.channels, shape.height, shape.width}),
      at::empty({steps, kParityBatch}, at::kLong)};
  Random random(5, RandomPurpose::Test);
  for (std::int64_t i = 0; i < b.images.numel(); ++i) {
    b.images.data_ptr<float>()[i] = 4 * random.uniform() - 2;
  }
  for (std::int64_t i = 0; i < b.labels.numel(); ++i) {
    b.labels.data_ptr<std::int64_t>()[i] =
        static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(shape.classes)));
  }
  return b;
}

std::vector<double> train(nn::Model& model, const ParityCase& c, const Batches& batches) {
  optim::OptimizerOptions options;
  options.name = c.optimizer;
  options.nesterov = c.nesterov;
  options.eps = kEps;
  options.delta = kEps;
  options.lr = kRate;
  options.scale = c.scale;
  const auto optimizer = optim::make_optimizer(options);
  optim::ParameterBlock block(trained(model, c.trains), true, optimizer->moments());
  optim::Rates rates(at::kCPU);
  rates.set(kRate, kFactorScale);
  std::vector<double> losses;
  for (int t = 0; t < c.steps; ++t) {
    block.zero_gradients();
    const at::Tensor loss = at::cross_entropy_loss(
        model.forward(batches.images[t], true), batches.labels[t], {}, 1, -100, c.label_smoothing);
    loss.backward();
    losses.push_back(loss.item<double>());
    const auto clip = optim::clip(block.gradients(), c.clip_norm);
    optimizer->step(block, rates, clip.divisor);
  }
  return losses;
}

class Parity : public ::testing::TestWithParam<ParityCase> {};

TEST_P(Parity, StepsAreThoseOfPyTorch) {
  const ParityCase& c = GetParam();
  const TempFolder folder;
  nn::ModelOptions options;
  options.name = c.model;
  options.hidden = {24, 20};
  options.channels = {6, 10};
  options.width = c.width;
  const auto model = nn::make_model(options, c.shape);
  model->initialize(nn::InitName::Kaiming, 11);
  if (c.trains != "dense") {
    for (const nn::NamedWeight& w : nn::factorable_weights(*model, {"default"})) {
      testing::factor_weight(w, 3);
    }
  }
  const Batches batches = make_batches(c.shape, c.steps);
  weights::save_model(folder.file("before"), *model);
  folder.add("images", testing::bytes_of(batches.images));
  folder.add("labels", testing::bytes_of(batches.labels));
  const std::vector<double> losses = train(*model, c, batches);
  weights::save_model(folder.file("after"), *model);
  folder.add(
      "case.json",
      nlohmann::json(
          {{"model", c.model},
           {"batches", batches.images.sizes().vec()},
           {"optimizer", c.optimizer},
           {"nesterov", c.nesterov},
           {"lr", kRate},
           {"factor_scale", kFactorScale},
           {"eps", kEps},
           {"other_lr", optim::OptimizerOptions().other_lr},
           {"adjust_lr_fn", c.scale == optim::MuonScale::MatchRms ? "match_rms_adamw" : "original"},
           {"weight_decay", optim::OptimizerOptions().weight_decay},
           {"momentum", optim::OptimizerOptions().momentum},
           {"clip_norm", c.clip_norm},
           {"label_smoothing", c.label_smoothing},
           {"trains", c.trains},
           {"losses", losses}})
          .dump());

  expect_has(testing::python("parity.py", {folder.path()}), " tensors agree");
}

constexpr data::ExampleShape kFashion{1, 28, 28, 10};
constexpr data::ExampleShape kCifar{3, 32, 32, 10};

INSTANTIATE_TEST_SUITE_P(
    All, Parity,
    ::testing::Values(
        ParityCase{"mlp_adamw", "mlp", 1, kFashion, "adamw", false, 1, 0.1, "dense", 3},
        ParityCase{"mlp_A", "mlp", 1, kFashion, "adamw", false, 0.5, 0, "A", 3},
        ParityCase{"mlp_adagrad", "mlp", 1, kFashion, "qcmd-adagrad", false, 1, 0, "dense", 3},
        ParityCase{"lenet5_sgd", "lenet5", 1, kFashion, "sgd", true, 0, 0, "dense", 3},
        ParityCase{"cnn_sgd", "cnn", 1, kCifar, "sgd", false, 0, 0, "dense", 3},
        ParityCase{"cnn_B", "cnn", 1, kFashion, "adamw", false, 1, 0.1, "B", 3},
        ParityCase{"vgg_adamw", "vgg16-small", 0.25, kCifar, "adamw", false, 1, 0.1, "dense", 1},
        ParityCase{"vgg_A", "vgg16-small", 0.25, kCifar, "sgd", false, 1, 0.1, "A", 1},
        ParityCase{"vgg_B", "vgg16-small", 0.25, kCifar, "sgd", true, 1, 0, "B", 1},
        ParityCase{"mlp_muon", "mlp", 1, kFashion, "muon", true, 1, 0, "dense", 50},
        ParityCase{"mlp_muon_A", "mlp", 1, kFashion, "muon", true, 0.5, 0, "A", 3},
        ParityCase{
            "lenet5_muon", "lenet5", 1, kFashion, "muon", false, 1, 0.1, "dense", 3,
            optim::MuonScale::Spectral}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain
