// `abtrain plan` and what it says about time.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

const std::string kSmall =
    "--config fashion_mnist_mlp --set model.hidden=[32,32] --set "
    "data.batch_size=8 --set data.subset=512 --set train.threads=1 --set "
    "device=cpu ";

TEST(PlanTime, GivenTimesNeedNoMeasuring) {
  const Outcome plan =
      run("plan " + kSmall +
              "--set method.name=ddp --set train.steps=10 --set "
              "schedule.warmup_steps=0 --nodes 1 --compute 1s",
          Stream::Out);
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_TRUE(contains(plan.text, "compute time as given")) << plan.text;
  EXPECT_TRUE(contains(plan.text, "10 s of training, 0.0 % of it"))
      << plan.text;
  // Nothing is said about time that was not asked for.
  const Outcome bare = run("plan " + kSmall, Stream::Out);
  EXPECT_EQ(bare.exit_code, 0);
  EXPECT_FALSE(contains(bare.text, "compute time")) << bare.text;
}

TEST(PlanTime, StandsBesideARun) {
  const TempFolder folder;
  const std::string small =
      kSmall + "--output " + folder.path() +
      " --set train.steps=12 --set method.warmup_steps=4 --set "
      "method.sync_every=6 --set method.full_rank_steps=2 --set "
      "schedule.warmup_steps=0 ";
  for (const std::string rule :
       {"{rule: fixed, rank: 4}", "{rule: energy, keep: 0.6}"}) {
    ASSERT_EQ(
        run("--overwrite --name r " + small + "--set 'method.rank=" + rule +
                "'",
            Stream::Error)
            .exit_code,
        0);
    const Outcome plan =
        run("plan --against " + folder.file("r") +
                " --bandwidth 1Gbit --format json",
            Stream::Out);
    ASSERT_EQ(plan.exit_code, 0) << plan.text;
    const auto json = nlohmann::json::parse(plan.text);
    if (rule.find("fixed") != std::string::npos) {
      EXPECT_EQ(json["bytes_per_worker"]["ratio"], 1.0) << plan.text;
    } else {
      EXPECT_NEAR(json["bytes_per_worker"]["ratio"].get<double>(), 1, 0.2);
    }
    EXPECT_GT(json["ms_per_step"]["planned"].get<double>(), 0);
    EXPECT_GT(json["ms_per_step"]["measured"].get<double>(), 0);
  }
  const Outcome table =
      run("plan --against " + folder.file("r") + " --nodes 1 --compute 5ms,2ms",
          Stream::Out);
  EXPECT_TRUE(contains(table.text, "bytes per worker")) << table.text;
}

TEST(PlanTime, SaysWhatIsWrong) {
  const auto expect =
      [](const std::string& arguments, int code, const std::string& message) {
        const Outcome outcome = run("plan " + arguments, Stream::Error);
        EXPECT_EQ(outcome.exit_code, code) << arguments;
        EXPECT_TRUE(contains(outcome.text, message)) << outcome.text;
      };
  expect("", 2, "expected --config FILE");
  expect(kSmall + "--nodes 4", 2, "--bandwidth: expected");
  expect(kSmall + "--bandwidth fast", 2, "got 'fast'");
  expect(kSmall + "--bandwidth 1Gbit --latency 5", 2, "got '5'");
  expect(kSmall + "--bandwidth 1Gbit --nodes 3", 2, "a divisor of the 4");
  expect(kSmall + "--bandwidth 1Gbit --nodes 0", 2, "at least 1; got 0");
  expect(kSmall + "--nodes 1 --compute 1s,2s,3s,4s", 2, "three times");
  expect(kSmall + "--nodes 1 --set method.rank.rule=sigma", 78, "--against");
  expect("--against /nowhere --bandwidth 1Gbit", 66, "/nowhere");
}

}  // namespace
}  // namespace abtrain
