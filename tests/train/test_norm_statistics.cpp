// evaluate.norm_batches: statistics against float64, and what a run leaves
// alone.
#include "train/norm_statistics.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/meter.h"
#include "comm/run_workers.h"
#include "comm/traffic.h"
#include "nn/dropout.h"
#include "nn/norm.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::tensors_of;
using testing::toy_options;
using testing::train_all;

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kBatches = 4;
constexpr double kWeight = 1.5;
constexpr double kBias = -0.25;

// Dropout would throw: the model has no generator.
std::unique_ptr<nn::Model> norms_only() {
  auto layers = std::make_unique<nn::Sequential>();
  layers->add("first", nn::batch_norm(kChannels));
  layers->add("relu", nn::relu());
  layers->add("drop", nn::dropout(0.5));
  layers->add("second", nn::batch_norm(kChannels));
  layers->add("pool", nn::average_pool());
  nn::Architecture net;
  net.layers = std::move(layers);
  auto model = std::make_unique<nn::Model>(std::move(net));
  for (const nn::NamedParameter& p : model->parameters()) {
    p.tensor->fill_(p.name.ends_with("weight") ? kWeight : kBias);
  }
  for (const nn::NamedBuffer& b : model->buffers()) {
    b.tensor->fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return model;
}

// The batches differ in mean and deviation, so that the mean of the variances
// is not the variance of all.
at::Tensor images_of_batch(int worker, std::int64_t k) {
  const auto seed = static_cast<std::uint64_t>(100 * worker + k + 1);
  const at::Tensor noise =
      at::randn({5, kChannels, 4, 4}, at::detail::createCPUGenerator(seed), at::kFloat);
  return noise * (1.0 + 0.5 * static_cast<double>(k)) + 0.7 * static_cast<double>(worker);
}

class Given : public data::BatchSource {
 public:
  explicit Given(int worker) : worker_(worker) {}
  void next(data::Batch& batch) override {
    batch.inputs = images_of_batch(worker_, taken_++);
  }
  double waited() const override {
    return 0;
  }
  std::int64_t taken() const {
    return taken_;
  }

 private:
  int worker_;
  std::int64_t taken_ = 0;
};

// Of one batch in float64, per channel.
struct BatchMoments {
  at::Tensor mean, unbiased, biased;
};

BatchMoments moments_of(const at::Tensor& x) {
  const at::Tensor rows = x.transpose(0, 1).flatten(1);
  const auto n = static_cast<double>(rows.size(1));
  const at::Tensor mean = rows.sum(1) / n;
  const at::Tensor squares = (rows - mean.unsqueeze(1)).square().sum(1);
  return {mean, squares / (n - 1), squares / n};
}

// In the order of the model's buffers.
std::vector<at::Tensor> expected_statistics(int workers) {
  const auto along = [](const at::Tensor& x) { return x.view({1, kChannels, 1, 1}); };
  std::vector<at::Tensor> sums(4);
  for (at::Tensor& sum : sums) {
    sum = at::zeros({kChannels}, at::kDouble);
  }
  for (int worker = 0; worker < workers; ++worker) {
    for (std::int64_t k = 0; k < kBatches; ++k) {
      const at::Tensor x = images_of_batch(worker, k).to(at::kDouble);
      const BatchMoments first = moments_of(x);
      const at::Tensor normal = (x - along(first.mean)) / (along(first.biased) + 1e-5).sqrt();
      const BatchMoments second = moments_of(at::clamp_min(normal * kWeight + kBias, 0));
      sums[0] += first.mean;
      sums[1] += first.unbiased;
      sums[2] += second.mean;
      sums[3] += second.unbiased;
    }
  }
  for (at::Tensor& sum : sums) {
    sum = sum / static_cast<double>(workers * kBatches);
  }
  return sums;
}

class NormStatistics : public ::testing::TestWithParam<int> {};

TEST_P(NormStatistics, AreMeansOverTheBatchesOfAllWorkers) {
  const int workers = GetParam();
  const std::vector<at::Tensor> expected = expected_statistics(workers);
  comm::run_workers(workers, 60, [&](comm::Communicator& world) {
    comm::TrafficMeter meter;
    const auto metered = comm::metered(world, "world", meter);
    const auto model = norms_only();
    Given batches(world.rank());
    collect_statistics(*model, batches, kBatches, *metered, comm::Purpose::Metrics);
    EXPECT_EQ(batches.taken(), kBatches);
    ASSERT_EQ(model->buffers().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const nn::NamedBuffer& b = model->buffers()[i];
      const at::Tensor error =
          (b.tensor->to(at::kDouble) - expected[i]).abs() / (expected[i].abs() + 1);
      EXPECT_LT(error.max().item<double>(), 1e-5) << b.name;
    }
    for (const nn::NamedParameter& p : model->parameters()) {
      const double value = p.name.ends_with("weight") ? kWeight : kBias;
      EXPECT_EQ(p.tensor->min().item<double>(), value) << p.name;
      EXPECT_EQ(p.tensor->max().item<double>(), value) << p.name;
    }
    EXPECT_EQ(
        meter.of(comm::Purpose::Metrics).bytes,
        comm::all_reduce_bytes(4 * kChannels, 4, workers, world.rank()));
    EXPECT_EQ(meter.training_bytes(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(All, NormStatistics, ::testing::Values(1, 3));

TEST(NoNormStatistics, TakeNoBatchAndSendNothing) {
  comm::run_workers(2, 60, [&](comm::Communicator& world) {
    comm::TrafficMeter meter;
    const auto metered = comm::metered(world, "world", meter);
    nn::ModelOptions options;
    options.name = "mlp";
    options.hidden = {4};
    const auto model = nn::make_model(options, {1, 4, 4, 4});
    model->initialize(nn::InitName::Kaiming, 1);
    Given batches(world.rank());
    collect_statistics(*model, batches, kBatches, *metered, comm::Purpose::Sync);
    EXPECT_EQ(batches.taken(), 0);
    EXPECT_TRUE(meter.scopes().empty());
  });
}

config::RunOptions run_with_norms(const std::string& method) {
  config::RunOptions o = testing::toy_zoo_options("vgg11-small");
  o.model.drop_rate = 0.3;
  o.data.augment = data::AugmentName::Crop;
  o.data.pad = 2;
  o.method.name = method;
  o.train.steps = 8;
  o.evaluate.every = Duration::steps(2);
  return o;
}

class NormRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(NormRuns, TrainToTheSameWeights) {
  const data::Dataset dataset = testing::toy_dataset(48, 3, 32);
  config::RunOptions o = run_with_norms(GetParam());
  const auto without = train_all(o, dataset);
  o.evaluate.norm_batches = 3;
  const auto with = train_all(o, dataset);
  expect_one_model(with);
  EXPECT_TRUE(std::isfinite(with[0].test.loss));

  const std::size_t statistics = with[0].model->buffers().size();
  std::int64_t numel = 0;
  for (const nn::NamedBuffer& b : with[0].model->buffers()) {
    numel += b.tensor->numel();
  }
  const auto before = tensors_of(*without[0].model);
  const auto after = tensors_of(*with[0].model);
  ASSERT_EQ(before.size(), after.size());
  ASSERT_GT(statistics, 0U);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool trained = i + statistics < after.size();
    EXPECT_EQ(at::equal(before[i], after[i]), trained) << "tensor " << i;
  }
  for (std::size_t r = 0; r < with.size(); ++r) {
    const TrafficSplit& old = without[0].workers[r].traffic;
    const TrafficSplit& now = with[0].workers[r].traffic;
    const auto sent = static_cast<double>(comm::all_reduce_bytes(numel, 4, 2, static_cast<int>(r)));
    EXPECT_EQ(now.sync, old.sync + sent);
    EXPECT_EQ(now.switches, old.switches + sent);
    EXPECT_EQ(now.metrics, old.metrics + 3 * sent);  // after steps 2, 4 and 6
  }

  // Evaluations on the way leave no trace.
  o.evaluate.every = Duration::steps(0);
  const auto unseen = train_all(o, dataset);
  expect_same_bits(*with[0].model, *unseen[0].model);
}

TEST_P(NormRuns, ResumeToTheSameBits) {
  config::RunOptions o = run_with_norms(GetParam());
  o.evaluate.norm_batches = 3;
  o.checkpoint.every = Duration::steps(5);
  const SavingRun run(o, testing::toy_dataset(48, 3, 32));
  for (const std::int64_t step : {std::int64_t{5}, o.train.steps}) {
    run.expect_whole(run.go_on(step));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NormRuns, ::testing::Values("ab", "ddp", "local-sgd", "diloco"), [](const auto& test) {
      std::string name = test.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(NormRunsWithoutNorms, ChangeNothing) {
  const data::Dataset dataset = testing::toy_dataset(128);
  config::RunOptions o = toy_options(2, 1);
  o.train.steps = 12;
  o.evaluate.every = Duration::steps(5);
  const auto without = train_all(o, dataset);
  o.evaluate.norm_batches = 3;
  const auto with = train_all(o, dataset);
  expect_same_bits(*without[0].model, *with[0].model);
  for (std::size_t r = 0; r < with.size(); ++r) {
    const TrafficSplit& old = without[0].workers[r].traffic;
    const TrafficSplit& now = with[0].workers[r].traffic;
    EXPECT_EQ(now.total(), old.total());
    EXPECT_EQ(now.metrics, old.metrics);
  }
}

}  // namespace
}  // namespace abtrain::train
