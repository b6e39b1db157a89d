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

// With layers of which some send more as factors, and others as dense weights.
config::RunOptions by_spectra() {
  config::RunOptions o = testing::metered_run(4);
  testing::set_phases(o, 2, 4, 0);
  o.method.name = "ab";
  o.method.group_size = 2;
  o.method.rank.rule = linalg::RankRuleName::Energy;
  o.model.hidden = {9, 30, 30};
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
  for (const int interval : {2, 4, 8}) {
    config::RunOptions o = by_spectra();
    testing::set_phases(o, 2, interval, 0);
    const data::Dataset dataset = testing::toy_dataset(64);
    const RunLength length = config::run_length(o, dataset.train.size());
    const auto possible = possible_sizes(o, dataset, length);
    const Bounds bounds = bounds_of(planned(o, possible, length), std::identity());
    EXPECT_LT(bounds.least, bounds.most);
    const auto model = nn::make_model(o.model, dataset);
    std::vector<std::string> layers;
    for (const nn::NamedWeight& w : model->weights()) {
      layers.push_back(w.layer);
    }
    layers.pop_back();  // the head stays dense
    ASSERT_EQ(layers.size(), 3U);
    double least = bounds.most;
    double most = bounds.least;
    for (int i = 0; i < 1000; ++i) {  // 0: dense; 9: the largest rank of fc1
      const std::map<std::string, std::int64_t> ranks = {
          {layers[0], std::min(i % 10, 7)},
          {layers[1], i / 10 % 10 % 7},
          {layers[2], i / 100 * 14 / 9}};
      const auto sizes = config::model_sizes(o, dataset, &ranks);
      const double bytes = planned_bytes(o, sizes->sizes, length);
      EXPECT_GE(bytes, bounds.least) << i;
      EXPECT_LE(bytes, bounds.most) << i;
      least = std::min(least, bytes);
      most = std::max(most, bytes);
    }
    EXPECT_EQ(least, bounds.least);
    EXPECT_EQ(most, bounds.most);
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
    const auto bytes = planned(o, possible_sizes(o, dataset, length), length);
    EXPECT_GT(sent, *std::ranges::min_element(bytes));
    EXPECT_LT(sent, *std::ranges::max_element(bytes));
  }
}

TEST(PossibleSizes, AreOneWhereTheRanksAreKnown) {
  config::RunOptions o = by_spectra();
  o.method.rank.rule = linalg::RankRuleName::Fraction;
  const data::Dataset dataset = testing::toy_dataset(64);
  EXPECT_EQ(possible_sizes(o, dataset, config::run_length(o, 64)).size(), 1U);
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
