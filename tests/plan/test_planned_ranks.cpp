// The ranks that plans show: known, or bounded where only the spectra tell; and warnings about
// networks in which AB-training is pointless.
#include "plan/possible_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/mapped.h"
#include "base/text.h"
#include "config/run_length.h"
#include "nn/families.h"
#include "nn/linear.h"
#include "plan/ab_notes.h"
#include "plan/bounds.h"
#include "plan/plan.h"
#include "plan/traffic.h"
#include "plan/traffic_meter.h"
#include "toy_data.h"

namespace abtrain::plan {
namespace {

// A machine that submits a run to GPUs need not have one.
TEST(PlannedRanks, AreMultiplesOf8InBf16OnAGpu) {
  config::RunOptions o;
  o.data.name = "cifar10";
  o.model.name = "vgg16-small";
  o.workers = 2;
  o.method.name = "ab";
  o.method.rank.rule = linalg::RankRuleName::Ratio;
  const auto all_are_multiples = [&](device::DeviceChoice device) {
    o.device = device;
    const auto planned = plan_json(o);
    return std::ranges::all_of(planned.at("layers"), [](const auto& layer) {
      return layer.at("rank").template get<std::int64_t>() % 8 == 0;
    });
  };
  EXPECT_TRUE(all_are_multiples(device::DeviceChoice::Cuda));
  EXPECT_FALSE(all_are_multiples(device::DeviceChoice::Cpu));
  o.train.precision = at::kFloat;
  EXPECT_FALSE(all_are_multiples(device::DeviceChoice::Cuda));
  o.method.rank.multiple = 4;
  o.train.precision.reset();
  EXPECT_FALSE(all_are_multiples(device::DeviceChoice::Cuda));
}

// Ranks that only the spectra tell.
config::RunOptions by_spectra() {
  config::RunOptions o = testing::metered_run(4);
  testing::set_phases(o, 2, 4, 0);
  o.method.name = "ab";
  o.method.group_size = 2;
  o.method.rank.rule = linalg::RankRuleName::Energy;
  o.model.hidden = {2, 30, 30};
  o.train.steps = 20;
  return o;
}

std::vector<double> planned(
    const config::RunOptions& o, const std::vector<config::PlannedSizes>& sizes,
    const RunLength& length) {
  return mapped(
      sizes, [&](const config::PlannedSizes& one) { return planned_bytes(o, one.sizes, length); });
}

TEST(PossibleSizes, BoundTheBytesOfAllRanks) {
  for (const char* reducer : {"plain", "powersgd", "int4"}) {
    for (const int interval : {1, 3, 8}) {
      config::RunOptions o = by_spectra();
      testing::set_phases(o, 2, interval, 0);
      o.reducer.name = reducer;
      const data::Dataset dataset = testing::toy_dataset(64);
      const RunLength length = config::run_length(o, dataset.train.size());
      const Bounds bounds =
          bounds_of(planned(o, possible_sizes(o, dataset), length), std::identity());
      const auto model = nn::make_model(o.model, dataset);
      const auto layers = mapped(model->weights(), &nn::NamedWeight::layer);
      double least = bounds.most;
      double most = bounds.least;
      // 64 x 2 and 30 x 2 have rank 0 (dense) or 1, 30 x 30 has one of up to 14.
      for (int i = 0; i < 60; ++i) {
        const std::map<std::string, std::int64_t> ranks = {
            {layers[0], i % 2}, {layers[1], i / 2 % 2}, {layers[2], i / 4}};
        const double bytes =
            planned_bytes(o, config::model_sizes(o, dataset, &ranks)->sizes, length);
        least = std::min(least, bytes);
        most = std::max(most, bytes);
      }
      EXPECT_EQ(least, bounds.least) << reducer << " " << interval;
      EXPECT_EQ(most, bounds.most) << reducer << " " << interval;
    }
  }
}

TEST(PossibleSizes, ARunLiesWithinThem) {
  for (const double keep : {0.3, 0.8}) {
    config::RunOptions o = by_spectra();
    o.method.rank.keep = keep;
    const data::Dataset dataset = testing::toy_dataset(256);
    const auto figures = train::train_threads({o, dataset, {}, at::kCPU})[0].workers;
    double sent = 0;
    for (const train::WorkerFigures& worker : figures) {
      sent += worker.traffic.total() / 4;
    }
    const RunLength length = config::run_length(o, dataset.train.size());
    const auto bytes = planned(o, possible_sizes(o, dataset), length);
    EXPECT_GT(sent, *std::ranges::min_element(bytes));
    EXPECT_LT(sent, *std::ranges::max_element(bytes));
  }
}

TEST(PossibleSizes, AreOneWhereTheRanksAreKnown) {
  config::RunOptions o = by_spectra();
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  const data::Dataset dataset = testing::toy_dataset(64);
  EXPECT_EQ(possible_sizes(o, dataset).size(), 1U);
}

// A network of pairs of a convolution with `groups` groups and one of 1 x 1.
std::unique_ptr<nn::Model> pairs_of_convolutions(std::int64_t groups) {
  auto layers = std::make_unique<nn::Sequential>();
  for (int i = 0; i < 3; ++i) {
    layers->add(formatted("wide{}", i), nn::conv2d(8, 8, {.groups = groups}));
    layers->add(formatted("point{}", i), nn::conv2d(8, 8, {.kernel = 1, .padding = 0}));
  }
  return std::make_unique<nn::Model>(nn::Architecture{std::move(layers), {}});
}

config::PlannedSizes with_ranks(const std::vector<std::int64_t>& ranks) {
  config::PlannedSizes planned;
  for (const std::int64_t rank : ranks) {
    planned.sizes.layers.push_back({8, 8, rank});
  }
  return planned;
}

TEST(AbNotes, DepthwiseNetworks) {
  const std::vector<config::PlannedSizes> ranks = {with_ranks({2, 2, 2})};
  EXPECT_EQ(ab_notes(*pairs_of_convolutions(1), ranks).size(), 0U);
  EXPECT_EQ(ab_notes(*pairs_of_convolutions(4), ranks).size(), 0U);
  const auto notes = ab_notes(*pairs_of_convolutions(8), ranks);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("3 of 6 layers are depthwise convolutions"), std::string::npos);
}

TEST(AbNotes, MostLayersAtRankOne) {
  const auto model = pairs_of_convolutions(1);
  EXPECT_EQ(ab_notes(*model, {with_ranks({1, 1, 2, 3})}).size(), 0U);
  const auto notes = ab_notes(*model, {with_ranks({1, 1, 1, 3})});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("3 of the 4 layers"), std::string::npos);
  // Ranks that may turn out higher are no reason to warn.
  EXPECT_EQ(ab_notes(*model, {with_ranks({1, 1, 1, 1}), with_ranks({4, 4, 4, 4})}).size(), 0U);
}

}  // namespace
}  // namespace abtrain::plan
