#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/plan.h"

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

}  // namespace
}  // namespace abtrain::plan
