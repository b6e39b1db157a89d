// `abtrain plan`: what it says about time, and dense networks of the same size.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "small_run.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

const std::string kSmall =
    "--config fashion_mnist_mlp --set model.hidden=[32,32] --set "
    "data.batch_size=8 --set data.subset=512 --set train.threads=1 --set "
    "device=cpu ";

TEST(PlanTime, GivenTimesNeedNoMeasuring) {
  const std::string plan = output_of(
      "plan " + kSmall +
      "--set method.name=ddp --set train.steps=10 --set "
      "schedule.warmup_steps=0 --nodes 1 --compute 1s");
  expect_has(plan, "compute time as given");
  expect_has(plan, "10 s of training, 0.0 % of it");
  // Nothing is said about time that was not asked for.
  EXPECT_FALSE(contains(output_of("plan " + kSmall), "compute time"));
}

TEST(PlanTime, HasBoundsWhereOnlySpectraTellTheRanks) {
  const std::string plan = output_of(
      "plan " + kSmall +
      "--set method.rank.rule=sigma --nodes 4 --bandwidth 1Mbit --compute 1s,500ms,2s");
  expect_has(plan, "AB step             between ");
  expect_has(plan, " of training, between ");
}

TEST(Plan, ComesFirstAndTheConfigurationOnRequest) {
  const std::string plan = output_of("plan " + kSmall);
  EXPECT_TRUE(plan.starts_with("fashion_mnist_mlp: ab, mlp on fashion-mnist\n")) << plan;
  EXPECT_FALSE(contains(plan, "factor_lr_scale")) << plan;
  // What is printed is a configuration with the same plan.
  const std::string config = output_of("plan " + kSmall + "--show-config");
  expect_has(config, "\n  factor_lr_scale: ");
  const TempFolder folder;
  EXPECT_EQ(output_of("plan '" + folder.add("whole.yaml", config) + "'"), plan);
  // What does not fit the data is refused all the same.
  expect_exit(78, "plan " + kSmall + "--show-config data.batch_size=4000");
}

TEST(Plan, SaysTheSameToPrograms) {
  const std::string ddp = "plan " + kSmall + "method.name=ddp train.steps=10 --json ";
  const auto plan = nlohmann::json::parse(output_of(ddp));
  EXPECT_EQ(plan["workers"], 4);
  EXPECT_EQ(plan["steps"], 10);
  EXPECT_EQ(plan["examples_per_step"], 32);
  EXPECT_EQ(plan["batches"], (std::vector<int>{8, 8, 8, 8}));
  const std::string unequal = "plan " + kSmall + "'balance=[1, 1, 0.5, 0.1]' ";
  const auto shares = nlohmann::json::parse(output_of(unequal + "--json"));
  EXPECT_EQ(shares["batches"], (std::vector<int>{13, 12, 6, 1}));
  EXPECT_EQ(shares["steps_per_epoch"], plan["steps_per_epoch"]);
  expect_has(output_of(unequal), "4, with batches of 13, 12, 6 and 1\n");
  EXPECT_EQ(plan["parameters"]["dense"], 785 * 32 + 33 * 32 + 33 * 10);
  EXPECT_EQ(
      plan["layers"][0], (nlohmann::json{{"name", "fc1"}, {"m", 784}, {"n", 32}, {"rank", 0}}));
  EXPECT_EQ(plan["traffic"]["vs_fp32"], 1.0);
  EXPECT_FALSE(plan.contains("seconds"));
  const auto timed = nlohmann::json::parse(output_of(ddp + "--nodes 1 --compute 1s"));
  EXPECT_EQ(timed["seconds"]["train"], 10);
  EXPECT_EQ(output_of("plan " + kSmall + "--format json"), output_of("plan " + kSmall + "--json"));
  // Ranks that only the spectra tell.
  const auto unknown =
      nlohmann::json::parse(output_of("plan " + kSmall + "method.rank.rule=energy --json"));
  EXPECT_TRUE(unknown["traffic"].is_null());
  EXPECT_TRUE(unknown["layers"][0]["rank"].is_null());
  EXPECT_EQ(unknown["layers"][0]["ranks"], (std::vector<double>{1, 29}));
  EXPECT_EQ(unknown["layers"][2]["rank"], 0);
  const auto& least = unknown["bounds"]["least"];
  const auto& most = unknown["bounds"]["most"];
  EXPECT_LE(most["stored"], unknown["parameters"]["dense"]);
  EXPECT_LT(least["stored"], most["stored"]);
  EXPECT_LT(least["traffic"]["whole_run"], most["traffic"]["whole_run"]);
  EXPECT_EQ(least["traffic"]["dense_step"], most["traffic"]["dense_step"]);
  expect_has(
      output_of("plan " + kSmall + "method.rank.rule=energy"), "whole run           between ");
}

// The figures of the table are those of the meter.
TEST(PlanMethods, PlannedBytesAreMeteredBytes) {
  const std::string small =
      "--config fashion_mnist_mlp --set model.hidden=[16,16] --set data.batch_size=8 --set "
      "data.subset=512 --set train.threads=1 --set device=cpu --set train.steps=6 --set "
      "schedule.warmup_steps=0 --set method.warmup_steps=2 --set method.rank.rule=energy ";
  const TempFolder folder;
  const auto table = nlohmann::json::parse(output_of("plan " + small + "--methods --json"));
  EXPECT_EQ(table["configured"], "ab");
  EXPECT_TRUE(table["network"].is_null());
  int compared = 0;
  for (const auto& row : table["methods"]) {
    const std::string name = row["name"];
    if (name != "ddp_int4" && name != "small_diloco_2bit" && name != "ab") {
      continue;
    }
    ++compared;
    std::string command = "train " + small + "--output '" + folder.path() + "' --name " + name;
    for (const std::string set : row["set"]) {
      command += " --set '" + set + "'";
    }
    expect_exit(0, command);
    const auto summary = nlohmann::json::parse(content(folder.file(name + "/summary.json")));
    const double sent = summary["traffic"]["bytes_per_worker"];
    const auto& bytes = row["bytes_per_worker"];
    EXPECT_GE(sent, bytes["least"].get<double>()) << name;
    EXPECT_LE(sent, bytes["most"].get<double>()) << name;
    EXPECT_EQ(bytes["least"] == bytes["most"], name != "ab") << name;
    EXPECT_EQ(row["parameters"]["least"] == summary["parameters"]["stored"], name != "ab") << name;
  }
  EXPECT_EQ(compared, 3);
}

TEST(PlanMethods, IsOneTableWithTheLink) {
  const std::string text =
      output_of("plan " + kSmall + "--methods --nodes 4 --bandwidth 1Gbit --latency 1ms");
  EXPECT_TRUE(
      text.starts_with("fashion_mnist_mlp: mlp on fashion-mnist, 4 workers; as configured: ab\n"
                       "4 nodes, links of 1 Gbit/s each way, 1 ms\n\n"
                       "  method "))
      << text;
  expect_has(text, "sent per step");
  expect_has(text, "on the link");
  expect_has(text, "\n  ddp_int4 ");
  expect_exit(2, "plan " + kSmall + "--methods --compute 1s", {"expected --workers-here"});
  expect_exit(2, "plan " + kSmall + "--methods --same-size-as fashion_mnist_mlp", {"--methods"});
  expect_exit(2, "plan " + kSmall + "--methods --show-config", {"--methods"});
}

TEST(Plan, NeedsNoData) {
  expect_has(
      output_of("plan resnet50_imagenet data.root=/nowhere"),
      "1,281,167 training and 50,000 test images of 3x224x224 (not found here; "
      "the sizes are ImageNet's)");
  const auto text = nlohmann::json::parse(output_of("plan gcide_gpt data.root=/nowhere --json"));
  EXPECT_EQ(text["data_found"], false);
  EXPECT_GT(text["train_examples"], 1000);
}

TEST(PlanTime, StandsBesideARun) {
  const TempFolder folder;
  const std::string keys = kSmall +
                           "--set train.steps=12 --set method.warmup_steps=4 --set "
                           "method.sync_every=6 --set method.full_rank_steps=2 --set "
                           "schedule.warmup_steps=0 --set 'method.rank={rule: fixed, rank: 4}' ";
  expect_exit(0, "--name r --output " + folder.path() + " " + keys);
  const auto run = nlohmann::json::parse(std::ifstream(folder.file("r/summary.json")));
  const auto plan = nlohmann::json::parse(output_of("plan " + keys + "--bandwidth 1Gbit --json"));
  EXPECT_EQ(plan["traffic"]["whole_run"], run["traffic"]["bytes_per_worker"]) << plan;
  EXPECT_GT(plan["seconds"]["average_step"].get<double>(), 0);
  expect_has(output_of("plan " + keys + "--nodes 1 --compute 5ms,2ms"), "as given");
}

TEST(PlanTime, SaysWhatIsWrong) {
  expect_exit(2, "plan", {"plan: expected a configuration"});
  const std::string plan = "plan " + kSmall;
  expect_exit(2, plan + "--nodes 4", {"--bandwidth: expected"});
  expect_exit(2, plan + "--bandwidth fast", {"got 'fast'"});
  expect_exit(2, plan + "--bandwidth 1Gbit --latency 5", {"got '5'"});
  expect_exit(2, plan + "--bandwidth 1Gbit --nodes 3", {"a divisor of the 4"});
  expect_exit(2, plan + "--bandwidth 1Gbit --nodes 0", {"at least 1; got 0"});
  expect_exit(2, plan + "--nodes 1 --compute 1s,2s,3s,4s", {"one to three durations"});
}

TEST(PlanSameSize, AsARunStores) {
  const TempFolder folder;
  expect_exit(
      0, "--name r --output " + folder.path() + " " + kSmall +
             "--set train.steps=4 --set method.warmup_steps=2 --set "
             "schedule.warmup_steps=0 --set 'method.rank={rule: energy, keep: "
             "0.6}'");
  const auto summary = nlohmann::json::parse(std::ifstream(folder.file("r/summary.json")));
  const std::string arguments = "plan --same-size-as " + folder.file("r");
  const auto found = nlohmann::json::parse(output_of(arguments + " --format json"));
  EXPECT_EQ(found["target"], summary["parameters"]["stored"]);
  EXPECT_EQ(found["set"][0], "method.name=ddp");
  EXPECT_EQ(found["shapes"][0]["name"], "narrow");
  EXPECT_EQ(found["shapes"][0]["set"], found["set"]);
  EXPECT_EQ(found["shapes"][0]["parameters"], found["parameters"]);
  // One feature more or less is about 800 of so few parameters.
  EXPECT_LE(found["difference"].get<double>(), 0.01);
  EXPECT_GT(found["difference"].get<double>(), -0.2);

  // The options that are printed give the network, and the plan is its plan.
  std::string options;
  for (const auto& set : found["set"]) {
    options += " --set '" + set.get<std::string>() + "'";
  }
  const std::string same = output_of(arguments);
  const std::string plan = output_of("plan -c " + folder.file("r/config.yaml") + options);
  EXPECT_TRUE(same.starts_with(plan)) << same << plan;
  expect_has(same, "\nsame size\n  target ");
  expect_has(same, std::to_string(found["parameters"].get<int>() / 1000) + ",");
}

TEST(PlanSameSize, AsAConfigurationPlans) {
  const std::string small = "plan --same-size-as vgg16_small_cifar10";
  // A tenth of the parameters at half width: about half / sqrt(10).
  const std::string own = output_of(small);
  expect_has(own, "the budget of vgg16_small_cifar10");
  expect_has(own, "--set method.name=ddp --set model.width=0.15");
  expect_has(output_of(small + " --set method.rank.rule=ratio"), "planned for vgg16_small_cifar10");
  // Without --config, --set changes both.
  expect_has(output_of(small + " --set model.width=1"), "--set model.width=0.3");
  // The four early convolutions that stay dense have 32 and 64 channels.
  expect_has(own, "--set method.name=ddp --set model.widths=[32, 32, 64, 64, 3");
  expect_has(own, "  features.3   3x3, 10 to 10, 900     3x3, 32 to 32, 9,216\n");
  expect_has(own, "  folded              not here: no tap of the head sees only copies\n");
  // A transformer keeps its heads and has fewer features in each.
  expect_has(output_of("plan --same-size-as vit_tiny_cifar10"), "parameters          535,390");
  // With --config, only the dense network, which may be another one.
  const std::string other =
      output_of("plan -c resnet18_cifar10 method.name=ddp --same-size-as vgg16_small_cifar10");
  expect_has(other, "ddp, resnet18 on cifar10\n");
  expect_has(other, "options             --set model.width=");
  expect_has(
      other, "matched             not here: there is no AB-training of this network to match");
}

TEST(PlanSameSize, SaysWhatIsWrong) {
  const TempFolder folder;
  folder.add("unfinished/config.yaml", "name: unfinished\n");
  const std::string plan = "plan --same-size-as ";
  expect_exit(66, plan + "/nowhere", {"a run folder or a configuration; configuration '/now"});
  expect_exit(66, plan + folder.file("unfinished"), {"a run that finished successfully"});
  expect_exit(78, plan + "fashion_mnist_mlp --set method.rank.rule=sigma", {"finished run"});
  expect_exit(
      78, plan + "fashion_mnist_mlp -c fashion_mnist_softmax_qrda",
      {"softmax has no layer to widen"});
  expect_exit(
      78, plan + "fashion_mnist_mlp -c vgg16_cifar10 --set model.weights=w.safetensors",
      {"model.weights: expected none"});
}

}  // namespace
}  // namespace abtrain
