// Plans of a user's own model on a user's own arrays.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nn/export_file.h"
#include "plan/plan.h"
#include "state/safetensors.h"
#include "temp_folder.h"

namespace abtrain::plan {
namespace {

TEST(ExportedPlan, TakesRowsOfNumbersAsTheyAre) {
  const TempFolder folder;
  testing::ExportFile file = testing::small_export();
  const std::string image = R"(,{"as_int":1},{"as_int":2},{"as_int":3})";
  file.program.replace(file.program.find(image), image.size(), R"(,{"as_int":6})");
  config::RunOptions o;
  o.model.name = "exported";
  o.model.file = folder.file("m.pt2");
  file.write(*o.model.file);
  o.data.name = "arrays";
  o.data.root = folder.path();
  o.data.batch_size = 4;
  state::write_safetensors(
      folder.file("train.safetensors"),
      {{"x", at::ones({41, 6})}, {"y", at::arange(41, at::kLong).remainder(4)}}, {});
  o.workers = 2;
  o.train.steps = 20;
  o.method.name = "ab";
  o.method.group_size = 1;
  o.method.warmup_steps = Duration::steps(4);
  o.method.sync_every = Duration::steps(5);
  o.method.full_rank_steps = Duration::steps(1);
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 2;
  o.device = device::DeviceChoice::Cpu;
  o.train.threads = 1;
  TimeRequest request;
  request.network.nodes = 1;
  const auto plan = plan_json(o, request);
  EXPECT_EQ(plan.at("train_examples"), 40);
  EXPECT_EQ(plan.at("steps_per_epoch"), 5);
  EXPECT_EQ(plan.at("parameters").at("dense"), 30 + 5 + 20 + 4);
  ASSERT_EQ(plan.at("layers").size(), 2U);
  EXPECT_EQ(
      plan.at("layers")[0],
      (nlohmann::ordered_json{{"name", "fc1"}, {"m", 6}, {"n", 5}, {"rank", 2}}));
  EXPECT_EQ(plan.at("layers")[1].at("rank"), 0);      // the last one stays dense
  EXPECT_GT(plan.at("seconds").at("dense_step"), 0);  // which was measured
  EXPECT_EQ(plan.at("task"), "4 classes: 0 .. 3");
  ASSERT_EQ(plan.at("facts").size(), 1U);
  const std::string text = plan_text(o);
  EXPECT_NE(text.find("40 training and 1 test examples"), std::string::npos);
  for (const std::string shown : {plan.at("task"), plan.at("facts")[0]}) {
    EXPECT_NE(text.find(shown), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace abtrain::plan
