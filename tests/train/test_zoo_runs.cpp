// The model zoo in the training loop: every family through all phases, and what
// differs between workers.
#include <map>
#include <mutex>

#include "example_kinds.h"
#include "toy_run.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::toy_zoo_options;
using testing::train_all;

class ZooRuns : public ::testing::TestWithParam<const char*> {};

// check_replicas is on: every worker holds the same bits when it should.
TEST_P(ZooRuns, EndWithOneFactoredModelAndTheSameBitsTwice) {
  config::RunOptions o = toy_zoo_options(GetParam());
  o.model.drop_rate = 0.3;
  o.model.drop_path = 0.1;
  const data::Dataset dataset = testing::toy_dataset(32, 3, 32);
  const auto first = train_all(o, dataset);
  const auto second = train_all(o, dataset);
  expect_same_bits(*first[0].model, *first[1].model);
  expect_same_bits(*first[0].model, *second[0].model);
  EXPECT_GT(first[0].model->dense_parameters(), first[0].model->stored_parameters());
  std::size_t factored = 0;
  for (const nn::NamedWeight& w : first[0].model->weights()) {
    factored += w.weight->is_factored();
  }
  EXPECT_GT(factored, 5U);
  EXPECT_TRUE(std::isfinite(first[0].test.loss));
}

INSTANTIATE_TEST_SUITE_P(
    All, ZooRuns, ::testing::Values("vgg11", "vgg11-small", "resnet18", "resnet50", "vit-tiny"),
    [](const auto& test) {
      std::string name = test.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Alone on the same pictures all workers learn the same, unless each drops
// numbers of its own.
TEST(Dropout, DiffersBetweenWorkers) {
  data::Dataset dataset = testing::toy_dataset(32, 3, 32);
  as_bytes(dataset.train)
      .pixels.copy_(as_bytes(dataset.train).pixels[0].expand_as(as_bytes(dataset.train).pixels));
  as_bytes(dataset.train).labels.zero_();
  for (const double rate : {0.0, 0.5}) {
    config::RunOptions o = toy_zoo_options("resnet18");
    o.method.sync = methods::SyncMode::OnlyB;
    o.method.warmup_steps = Duration::steps(0);
    o.method.sync_every = Duration::steps(100);
    o.model.drop_rate = rate;
    o.train.steps = 4;
    o.train.check_replicas = 0;
    std::mutex mutex;
    std::map<int, at::Tensor> learned;
    train_all(o, dataset, [&](int rank, std::int64_t step, nn::Model& model) {
      const std::lock_guard lock(mutex);
      if (step == 3) {
        learned[rank] = model.weights()[3].weight->factor(nn::Factor::B).detach().clone();
      }
    });
    ASSERT_EQ(learned.size(), 2U);
    EXPECT_EQ(at::equal(learned[0], learned[1]), rate == 0) << rate;
  }
}

}  // namespace
}  // namespace abtrain::train
