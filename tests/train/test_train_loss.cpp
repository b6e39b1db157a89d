// evaluate.train: the objective that a run minimizes, against float64.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/config.h"
#include "example_kinds.h"
#include "factored_model.h"
#include "lacks.h"
#include "plan/plan.h"
#include "temp_folder.h"
#include "toy_run.h"
#include "train/evaluate_run.h"
#include "train/session.h"
#include "weights/model_file.h"

namespace abtrain::train {
namespace {

using nlohmann::json;
using testing::toy_options;

// Of linear layers with ReLUs between, N x F inputs in float64.
double mean_loss(const nn::Model& model, at::Tensor x, const at::Tensor& labels, double smoothing) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < model.weights().size(); ++i) {
    if (i > 0) {
      x = at::clamp_min(x, 0);
    }
    x = at::matmul(x, model.weights()[i].weight->merged().to(at::kDouble).t()) +
        model.parameters()[i].tensor->to(at::kDouble);
  }
  const at::Tensor minus_log = at::logsumexp(x, 1, true) - x;
  return ((1 - smoothing) * at::gather(minus_log, 1, labels.view({-1, 1})).mean() +
          smoothing * minus_log.mean())
      .item<double>();
}

double squares(const nn::Model& model, bool biases) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (const nn::NamedWeight& w : model.weights()) {
    sum += w.weight->merged().to(at::kDouble).square().sum().item<double>();
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    sum += biases ? p.tensor->to(at::kDouble).square().sum().item<double>() : 0;
  }
  return sum;
}

at::Tensor toy_inputs(const data::Dataset& set) {
  return ((as_bytes(set.train).pixels.to(at::kDouble) / 255 - double{set.mean[0]}) /
          double{set.std[0]})
      .flatten(1);
}

struct LossCase {
  const char* method;
  int workers;
  double smoothing;
  bool decay_all;
};

class Objective : public ::testing::TestWithParam<LossCase> {};

TEST_P(Objective, IsWhatTrainLossSays) {
  const LossCase& c = GetParam();
  const data::Dataset dataset = testing::toy_dataset(250);
  config::RunOptions o = toy_options(c.workers, 1);
  o.method.name = c.method;
  o.optimizer.name = "sgd";
  o.optimizer.weight_decay = 0.03;
  o.optimizer.decay_all = c.decay_all;
  o.train.label_smoothing = c.smoothing;
  o.data.augment = data::AugmentName::Crop;  // of the training alone
  o.data.erase = 0.5;
  o.evaluate.batch_size = 17;
  EXPECT_FALSE(testing::train_all(o, dataset)[0].train_loss);
  o.evaluate.train = true;
  const auto results = testing::train_all(o, dataset);
  const nn::Model& model = *results[0].model;
  const double wanted =
      mean_loss(model, toy_inputs(dataset), as_bytes(dataset.train).labels, c.smoothing) +
      0.03 / 2 * squares(model, c.decay_all);
  for (const TrainResult& r : results) {
    ASSERT_TRUE(r.train_loss);
    EXPECT_NEAR(*r.train_loss, wanted, 1e-6);
  }
  // The same where the images lie on the device.
  const data::Examples none;
  data::DeviceCopies copies(dataset, none);
  TrainInputs inputs{o, dataset, none, at::kCPU};
  inputs.device_copies = &copies;
  for (const TrainResult& r : train_threads(inputs)) {
    EXPECT_EQ(r.train_loss, results[0].train_loss);
  }
}

// Weight decay does not reach frozen tensors, nor what an adapter leaves of its weight.
TEST(TrainLoss, CountsOnlyWhatIsTrained) {
  const data::Dataset dataset = testing::toy_dataset(250);
  config::RunOptions o = toy_options(2, 1);
  o.method.warmup_steps = Duration::steps(0);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.remainder = methods::Remainder::Freeze;
  o.model.frozen = {"*", "!fc3"};
  o.optimizer.name = "sgd";
  o.optimizer.decay_all = true;
  o.evaluate.train = true;
  o.train.steps = 5;
  o.optimizer.weight_decay = 0.03;
  const TrainResult result = std::move(testing::train_all(o, dataset)[0]);
  const nn::Model& model = *result.model;
  const at::NoGradGuard no_grad;
  double sum = 0;
  int adapters = 0;
  for (const nn::NamedWeight& w : model.weights()) {
    if (w.weight->is_factored()) {
      ++adapters;
      const at::Tensor product =
          at::matmul(w.weight->outer.to(at::kDouble), w.weight->inner.to(at::kDouble));
      sum += w.weight->scale * w.weight->scale * product.square().sum().item<double>();
    } else if (w.layer == "fc3") {
      sum += w.weight->dense.to(at::kDouble).square().sum().item<double>();
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (p.name == "fc3.bias") {
      sum += p.tensor->to(at::kDouble).square().sum().item<double>();
    }
  }
  EXPECT_GT(adapters, 0);
  const double loss = mean_loss(model, toy_inputs(dataset), as_bytes(dataset.train).labels, 0);
  EXPECT_NEAR(*result.train_loss, loss + 0.03 / 2 * sum, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    All, Objective,
    ::testing::Values(
        LossCase{"ddp", 1, 0, false}, LossCase{"ddp", 2, 0.1, true},
        LossCase{"local-sgd", 2, 0, true}, LossCase{"ab", 2, 0.1, false}),
    [](const auto& each) {
      std::string name = formatted("{}{}", each.param.method, each.param.workers);
      std::erase(name, '-');
      return name;
    });

TEST(Penalty, ByOptimizer) {
  nn::ModelOptions mlp;
  mlp.hidden = {9};
  const auto model = nn::make_model(mlp, {1, 3, 4, 5});
  model->initialize(nn::InitName::Kaiming, 3);
  for (const nn::NamedParameter& p : model->parameters()) {
    const at::NoGradGuard no_grad;
    p.tensor->fill_(-2);  // 9 + 5 biases
  }
  optim::OptimizerOptions o{.name = "sgd", .weight_decay = 0.5};
  const double weights = squares(*model, false);
  EXPECT_NEAR(penalty(*model, o), weights / 4, 1e-12);
  o.decay_all = true;
  EXPECT_NEAR(penalty(*model, o), (weights + 14 * 4) / 4, 1e-12);
  o.weight_decay = 0;
  EXPECT_EQ(penalty(*model, o), 0);
  for (const char* decoupled : {"adamw", "muon"}) {
    o = {.name = decoupled, .weight_decay = 0.5};
    EXPECT_EQ(penalty(*model, o), 0);
  }
  o = {.name = "qcmd-adagrad", .decay_all = true, .l1 = 0.25};
  double sizes = 14 * 2;
  for (const nn::NamedWeight& w : model->weights()) {
    sizes += w.weight->dense.to(at::kDouble).abs().sum().item<double>();
  }
  EXPECT_NEAR(penalty(*model, o), sizes / 4, 1e-12);
  o = {.name = "sgd", .weight_decay = 0.5};
  testing::factor_weight(model->weights()[0], 9);  // not cut
  EXPECT_NEAR(penalty(*model, o), weights / 4, 1e-6);
}

// 4096 images of 7 x 7 standardized pixels, l2 = .01 on weights and biases: the
// optimum of the whole objective is .7398529.
TEST(TrainLoss, SoftmaxReachesTheKnownOptimum) {
  if (data::find_dataset("fashion-mnist").found_in.empty()) {
    ABT_LACKS("fashion-mnist");
  }
  const TempFolder folder;
  const config::RunOptions o = config::read_config(
      "", {"name=softmax",
           "output=" + folder.path(),
           "device=cpu",
           "workers=1",
           "method.name=ddp",
           "model.name=softmax",
           "data.subset=4096",
           "data.pool=7",
           "data.standardize=true",
           "data.batch_size=4096",
           "optimizer.name=sgd",
           "optimizer.lr=0.15",
           "optimizer.momentum=0.9",
           "optimizer.weight_decay=0.01",
           "optimizer.decay_all=true",
           "schedule.name=constant",
           "train.epochs=350",
           "train.threads=1",
           "train.precision=fp32",
           "evaluate.every=150",
           "checkpoint.every=0",
           "evaluate.train=true"});
  EXPECT_NE(
      plan::plan_text(o).find("4,096 training and 10,000 test images of 1x7x7"), std::string::npos);
  Log log(LogLevel::Quiet);
  train(o, {}, log);
  const json summary = json::parse(read_file(o.output + "/" + o.name + "/summary.json"));
  EXPECT_EQ(summary["steps"], 350);
  EXPECT_NEAR(summary["train_loss"].get<double>(), 0.7398529, 1e-6);

  // From the bytes and the saved model, all of it in float64.
  const data::Dataset bytes = data::load_dataset({.name = "fashion-mnist"});
  at::Tensor x = as_bytes(bytes.train)
                     .pixels.slice(0, 0, 4096)
                     .to(at::kDouble)
                     .view({4096, 7, 4, 7, 4})
                     .mean({2, 4})
                     .flatten(1) /
                 255;
  x = x - x.mean(0, true);
  x = x / (x.square().mean(0, true).sqrt() + 1e-3);
  const auto model = nn::make_model(o.model, {1, 7, 7, 10});
  const std::string run = folder / "softmax";
  weights::load_model(run + "/model.safetensors", *model);
  const double wanted = mean_loss(*model, x, as_bytes(bytes.train).labels.slice(0, 0, 4096), 0) +
                        0.01 / 2 * squares(*model, true);
  EXPECT_NEAR(summary["train_loss"].get<double>(), wanted, 1e-7);

  std::vector<double> losses;
  std::ifstream lines(run + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line);
    if (event["event"] == "evaluate") {
      losses.push_back(event["train_loss"]);
    }
  }
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_GT(losses[0], losses[1]);
  EXPECT_EQ(losses[2], summary["train_loss"]);
  const json again = evaluate_run(o, {run}, log);
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
  EXPECT_EQ(again["loss"], summary["loss"]);
  RecordProperty("figures", formatted("{} {}", summary["train_loss"].dump(), wanted));
}

}  // namespace
}  // namespace abtrain::train
