// `abtrain plan`: what it says about time, and dense networks of the same size.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

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
  EXPECT_TRUE(contains(plan.text, "10 s of training, 0.0 % of it")) << plan.text;
  // Nothing is said about time that was not asked for.
  const Outcome bare = run("plan " + kSmall, Stream::Out);
  EXPECT_EQ(bare.exit_code, 0);
  EXPECT_FALSE(contains(bare.text, "compute time")) << bare.text;
}

TEST(Plan, ComesFirstAndTheConfigurationOnRequest) {
  const Outcome plan = run("plan " + kSmall, Stream::Out);
  EXPECT_TRUE(plan.text.starts_with("fashion_mnist_mlp: ab, mlp on fashion-mnist\n")) << plan.text;
  EXPECT_FALSE(contains(plan.text, "factor_lr_scale")) << plan.text;
  // What is printed is a configuration with the same plan.
  const Outcome config = run("plan " + kSmall + "--show-config", Stream::Out);
  EXPECT_EQ(config.exit_code, 0);
  EXPECT_TRUE(contains(config.text, "\n  factor_lr_scale: ")) << config.text;
  const TempFolder folder;
  const std::string file = folder.add("whole.yaml", config.text);
  EXPECT_EQ(run("plan '" + file + "'", Stream::Out).text, plan.text);
  // What does not fit the data is refused all the same.
  EXPECT_EQ(
      run("plan " + kSmall + "--show-config data.batch_size=4000", Stream::Error).exit_code, 78);
}

TEST(Plan, SaysTheSameToPrograms) {
  const std::string ddp = "plan " + kSmall + "method.name=ddp train.steps=10 --json ";
  const Outcome plain = run(ddp, Stream::Out);
  ASSERT_EQ(plain.exit_code, 0);
  const auto plan = nlohmann::json::parse(plain.text);
  EXPECT_EQ(plan["workers"], 4);
  EXPECT_EQ(plan["steps"], 10);
  EXPECT_EQ(plan["examples_per_step"], 32);
  EXPECT_EQ(plan["batches"], (std::vector<int>{8, 8, 8, 8}));
  const std::string unequal = "plan " + kSmall + "'balance=[1, 1, 0.5, 0.1]' ";
  const auto shares = nlohmann::json::parse(run(unequal + "--json", Stream::Out).text);
  EXPECT_EQ(shares["batches"], (std::vector<int>{13, 12, 6, 1}));
  EXPECT_EQ(shares["steps_per_epoch"], plan["steps_per_epoch"]);
  EXPECT_TRUE(contains(run(unequal, Stream::Out).text, "4, with batches of 13, 12, 6 and 1\n"));
  EXPECT_EQ(plan["parameters"]["dense"], 785 * 32 + 33 * 32 + 33 * 10);
  EXPECT_EQ(
      plan["layers"][0], (nlohmann::json{{"name", "fc1"}, {"m", 784}, {"n", 32}, {"rank", 0}}));
  EXPECT_EQ(plan["traffic"]["vs_fp32"], 1.0);
  EXPECT_FALSE(plan.contains("seconds"));
  const auto timed = nlohmann::json::parse(run(ddp + "--nodes 1 --compute 1s", Stream::Out).text);
  EXPECT_EQ(timed["seconds"]["train"], 10);
  EXPECT_EQ(
      run("plan " + kSmall + "--format json", Stream::Out).text,
      run("plan " + kSmall + "--json", Stream::Out).text);
  // Ranks that only the spectra tell.
  const auto unknown = nlohmann::json::parse(
      run("plan " + kSmall + "method.rank.rule=energy --json", Stream::Out).text);
  EXPECT_TRUE(unknown["traffic"].is_null());
  EXPECT_TRUE(unknown["layers"][0]["rank"].is_null());
  EXPECT_EQ(unknown["layers"][2]["rank"], 0);
}

TEST(Plan, NeedsNoData) {
  const Outcome images = run("plan resnet50_imagenet data.root=/nowhere", Stream::Out);
  EXPECT_EQ(images.exit_code, 0);
  EXPECT_TRUE(contains(
      images.text,
      "1,281,167 training and 50,000 test images of 3x224x224 (not found here; "
      "the sizes are ImageNet's)"))
      << images.text;
  const auto text =
      nlohmann::json::parse(run("plan gcide_gpt data.root=/nowhere --json", Stream::Out).text);
  EXPECT_EQ(text["data_found"], false);
  EXPECT_GT(text["train_examples"], 1000);
}

TEST(PlanTime, StandsBesideARun) {
  const TempFolder folder;
  const std::string small = kSmall + "--output " + folder.path() +
                            " --set train.steps=12 --set method.warmup_steps=4 --set "
                            "method.sync_every=6 --set method.full_rank_steps=2 --set "
                            "schedule.warmup_steps=0 ";
  for (const std::string rule : {"{rule: fixed, rank: 4}", "{rule: energy, keep: 0.6}"}) {
    ASSERT_EQ(
        run("--overwrite --name r " + small + "--set 'method.rank=" + rule + "'", Stream::Error)
            .exit_code,
        0);
    const Outcome plan =
        run("plan --against " + folder.file("r") + " --bandwidth 1Gbit --format json", Stream::Out);
    ASSERT_EQ(plan.exit_code, 0) << plan.text;
    const auto found = nlohmann::json::parse(plan.text);
    if (rule.find("fixed") != std::string::npos) {
      EXPECT_EQ(found["bytes_per_worker"]["ratio"], 1.0) << plan.text;
    } else {
      EXPECT_NEAR(found["bytes_per_worker"]["ratio"].get<double>(), 1, 0.2);
    }
    EXPECT_GT(found["ms_per_step"]["planned"].get<double>(), 0);
    EXPECT_GT(found["ms_per_step"]["measured"].get<double>(), 0);
  }
  const Outcome table =
      run("plan --against " + folder.file("r") + " --nodes 1 --compute 5ms,2ms", Stream::Out);
  EXPECT_TRUE(contains(table.text, "bytes per worker")) << table.text;
}

TEST(PlanTime, SaysWhatIsWrong) {
  const auto expect = [](const std::string& arguments, int code, const std::string& message) {
    const Outcome outcome = run("plan " + arguments, Stream::Error);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_TRUE(contains(outcome.text, message)) << outcome.text;
  };
  expect("", 2, "plan: expected a configuration");
  expect(kSmall + "--nodes 4", 2, "--bandwidth: expected");
  expect(kSmall + "--bandwidth fast", 2, "got 'fast'");
  expect(kSmall + "--bandwidth 1Gbit --latency 5", 2, "got '5'");
  expect(kSmall + "--bandwidth 1Gbit --nodes 3", 2, "a divisor of the 4");
  expect(kSmall + "--bandwidth 1Gbit --nodes 0", 2, "at least 1; got 0");
  expect(kSmall + "--nodes 1 --compute 1s,2s,3s,4s", 2, "one to three durations");
  expect(kSmall + "--nodes 1 --set method.rank.rule=sigma", 78, "--against");
  expect("--against /nowhere --bandwidth 1Gbit", 66, "/nowhere");
}

TEST(PlanSameSize, AsARunStores) {
  const TempFolder folder;
  ASSERT_EQ(
      run("--name r --output " + folder.path() + " " + kSmall +
              "--set train.steps=4 --set method.warmup_steps=2 --set "
              "schedule.warmup_steps=0 --set 'method.rank={rule: energy, keep: "
              "0.6}'",
          Stream::Error)
          .exit_code,
      0);
  const auto summary = nlohmann::json::parse(std::ifstream(folder.file("r/summary.json")));
  const std::string arguments = "plan --same-size-as " + folder.file("r");
  const Outcome outcome = run(arguments + " --format json", Stream::Out);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const auto found = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(found["target"], summary["parameters"]["stored"]);
  EXPECT_EQ(found["set"][0], "method.name=ddp");
  // One feature more or less is about 800 of so few parameters.
  EXPECT_LE(found["difference"].get<double>(), 0.01);
  EXPECT_GT(found["difference"].get<double>(), -0.2);

  // The options that are printed give the network, and the plan is its plan.
  std::string options;
  for (const auto& set : found["set"]) {
    options += " --set '" + set.get<std::string>() + "'";
  }
  const Outcome same = run(arguments, Stream::Out);
  const Outcome plan = run("plan -c " + folder.file("r/config.yaml") + options, Stream::Out);
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_TRUE(same.text.starts_with(plan.text)) << same.text << plan.text;
  EXPECT_TRUE(contains(same.text, "\nsame size\n  target ")) << same.text;
  EXPECT_TRUE(contains(same.text, std::to_string(found["parameters"].get<int>() / 1000) + ","))
      << same.text;
}

TEST(PlanSameSize, AsAConfigurationPlans) {
  // A tenth of the parameters at half width: about half / sqrt(10).
  const Outcome own = run("plan --same-size-as vgg16_small_cifar10", Stream::Out);
  ASSERT_EQ(own.exit_code, 0);
  EXPECT_TRUE(contains(own.text, "the budget of vgg16_small_cifar10")) << own.text;
  EXPECT_TRUE(contains(own.text, "--set method.name=ddp --set model.width=0.15")) << own.text;
  const Outcome even =
      run("plan --same-size-as vgg16_small_cifar10 --set method.rank.rule=ratio", Stream::Out);
  EXPECT_TRUE(contains(even.text, "planned for vgg16_small_cifar10")) << even.text;
  // Without --config, --set changes both.
  const Outcome wide =
      run("plan --same-size-as vgg16_small_cifar10 --set model.width=1", Stream::Out);
  EXPECT_TRUE(contains(wide.text, "--set model.width=0.3")) << wide.text;
  // A transformer keeps its heads and has fewer features in each.
  const Outcome vit = run("plan --same-size-as vit_tiny_cifar10", Stream::Out);
  EXPECT_TRUE(contains(vit.text, "parameters          535,390")) << vit.text;
  // With --config, only the dense network, which may be another one.
  const Outcome other =
      run("plan -c resnet18_cifar10 method.name=ddp --same-size-as "
          "vgg16_small_cifar10",
          Stream::Out);
  ASSERT_EQ(other.exit_code, 0);
  EXPECT_TRUE(contains(other.text, "ddp, resnet18 on cifar10\n")) << other.text;
  EXPECT_TRUE(contains(other.text, "options             --set model.width=")) << other.text;
}

TEST(PlanSameSize, SaysWhatIsWrong) {
  const TempFolder folder;
  folder.add("unfinished/config.yaml", "name: unfinished\n");
  const auto expect = [](const std::string& arguments, int code, const std::string& message) {
    const Outcome outcome = run("plan --same-size-as " + arguments, Stream::Error);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_TRUE(contains(outcome.text, message)) << outcome.text;
  };
  expect("/nowhere", 66, "a run folder or a configuration; configuration '/now");
  expect(folder.file("unfinished"), 66, "a run that finished successfully");
  expect("fashion_mnist_mlp --set method.rank.rule=sigma", 78, "finished run");
  expect("fashion_mnist_mlp -c fashion_mnist_softmax_qrda", 78, "softmax has no layer to widen");
  expect(
      "fashion_mnist_mlp -c vgg16_cifar10 --set model.weights=w.safetensors", 78,
      "model.weights: expected none");
}

}  // namespace
}  // namespace abtrain
