// Whole runs of the program on the real Fashion-MNIST, a few steps each, and all
// the ways in which a run can be refused or end early.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"
#include "small_run.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;
using nlohmann::json;

TEST(CliRun, TrainsReportsAndEvaluatesToTheSameFigure) {
  const TempFolder folder;
  const std::string trained = output_of(small_run(folder));
  expect_has(trained, "accuracy");
  expect_has(trained, "of fp32 data parallel");

  const std::string run_folder = folder.file("small");
  const json summary = json::parse(content(run_folder + "/summary.json"));
  EXPECT_EQ(summary["steps"], 8);
  EXPECT_EQ(summary["workers"], 4);
  EXPECT_GT(summary["core_share"], 0);
  EXPECT_TRUE(summary["beside_others"].is_boolean());
  ASSERT_EQ(summary["layers"].size(), 2u);
  for (const json& layer : summary["layers"]) {
    EXPECT_EQ(layer["rank"], 4);
    EXPECT_GT(layer["energy"], layer["first_energy"]);
  }
  // 784-32-32-10; fc1 and fc2 at rank 4, fc3 and the biases dense.
  EXPECT_EQ(summary["parameters"]["dense"], 785 * 32 + 33 * 32 + 33 * 10);
  EXPECT_EQ(summary["parameters"]["stored"], 4 * (784 + 32) + 32 + 4 * 64 + 32 + 33 * 10);
  const json& traffic = summary["traffic"];
  const double total = traffic["bytes_per_worker"];
  EXPECT_NEAR(
      traffic["by_phase"]["full"].get<double>() + traffic["by_phase"]["ab"].get<double>() +
          traffic["by_phase"]["switches"].get<double>(),
      total,
      3);  // each is rounded
  EXPECT_NEAR(
      traffic["inside_groups"].get<double>() + traffic["between_groups"].get<double>(), total, 3);
  const json& seconds = summary["seconds"];
  EXPECT_NEAR(
      seconds["compute"].get<double>() + seconds["communication"].get<double>() +
          seconds["svd"].get<double>() + seconds["data"].get<double>(),
      seconds["train"].get<double>(), 1e-6);
  EXPECT_GT(seconds["compute"], 0);
  EXPECT_GT(traffic["by_purpose"]["metrics"], 0);

  std::ifstream metrics(run_folder + "/metrics.jsonl");
  std::map<std::string, int> events;
  std::string phases;
  for (std::string line; std::getline(metrics, line);) {
    const json event = json::parse(line);
    ++events[event["event"]];
    if (event["event"] == "step") {
      phases += event["phase"] == "full" ? "F" : "A";
      EXPECT_GT(event["lr"], 0) << line;
    }
  }
  EXPECT_EQ(phases, "FFAAAAFA");
  EXPECT_EQ(events["step"], 8);
  EXPECT_EQ(events["sync"], 2);       // after step 6, and at the end
  EXPECT_EQ(events["decompose"], 2);  // after steps 2 and 7
  EXPECT_GE(events["evaluate"], 1);

  const json again = json::parse(output_of("evaluate '" + run_folder + "' --json"));
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
  EXPECT_EQ(again["compression_ratio"], summary["compression_ratio"]);
  EXPECT_NEAR(again["loss"].get<double>(), summary["loss"].get<double>(), 1e-5);

  // The file of the model says what the network takes.
  const std::string model = content(run_folder + "/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, model.data(), sizeof(length));
  const json about = json::parse(model.substr(8, length))["__metadata__"];
  EXPECT_EQ(about["model"], "mlp");
  EXPECT_EQ(about["data"], "fashion-mnist");
  const json names = json::parse(about["classes"].get<std::string>());
  EXPECT_EQ(names.size(), 10U);
  EXPECT_EQ(names[9], "Ankle boot");
  EXPECT_EQ(about["input"], "1,28,28");
  EXPECT_EQ(about["mean"], "0.286");
  EXPECT_EQ(about["std"], "0.353");
  EXPECT_TRUE(about["version"].get<std::string>().starts_with("abtrain "));

  // The run's own configuration runs again, to the same bits.
  output_of("--config '" + run_folder + "/config.yaml' --name again");
  EXPECT_TRUE(content(folder.file("again/model.safetensors")) == model);
}

// The clock stands still in evaluations: one of 10,000 images takes far longer
// than the single small step after it.
TEST(CliRun, AnEvaluationIsNoTrainingTime) {
  const TempFolder folder;
  output_of(small_run(folder, "--set evaluate.every=7 --set method.name=ddp"));
  std::ifstream metrics(folder.file("small/metrics.jsonl"));
  std::vector<double> seconds;
  for (std::string line; std::getline(metrics, line);) {
    const json event = json::parse(line);
    if (event["event"] == "evaluate") {
      seconds.push_back(event["train_seconds"]);
    }
  }
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_GT(seconds[0], 0);
  EXPECT_LE(seconds[0], seconds[1]);
}

TEST(CliRun, SaysWhereWorkersOutnumberTheCores) {
  const TempFolder folder;
  expect_exit(
      0, small_run(folder, "--set device=cpu"), {"4 workers on cpu, sharing 1 core, "},
      "taskset -c 0 ");
}

struct BadRun {
  std::string name;
  const char* more;  // arguments; @ stands for the folder
  int exit_code;
  std::vector<std::string> says;
};

class CliBadRun : public ::testing::TestWithParam<BadRun> {};

TEST_P(CliBadRun, EndsWithItsCodeAndSaysWhy) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const TempFolder folder;
  folder.add("file", "not a folder");
  const std::string said = expect_exit(
      GetParam().exit_code, small_run(folder, replaced(GetParam().more, "@", folder.path())),
      GetParam().says);
  EXPECT_FALSE(contains(said, "frame #")) << said;
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/summary.json")));
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadRun,
    ::testing::Values(
        BadRun{"GroupsDoNotFit", "--set method.group_size=3", 78, {"method.group_size", "1, 2"}},
        BadRun{
            "RankAboveEveryLayer",
            "--set method.rank.rank=33",
            78,
            {"method.rank.rank", "at most 32", "got 33"}},
        BadRun{"NothingToFactor", "--set 'method.keep_dense=[\"*\"]'", 78, {"no layer to factor"}},
        BadRun{
            "KeepsAnUnknownLayer",
            "--set 'method.keep_dense=[conv9]'",
            78,
            {"'conv9' matches no layer", "fc1"}},
        BadRun{
            "AllStaysDense",
            "--set method.dense_share=1",
            78,
            {"method.dense_share", "from 0 to below 1"}},
        BadRun{
            "BudgetOutOfReach",
            "--set 'method.rank={rule: budget, ratio: 1000}'",
            78,
            {"method.rank.ratio"}},
        BadRun{
            "BatchBeyondTheData", "--set data.batch_size=20000", 78, {"data.batch_size", "60,000"}},
        BadRun{"ValidationBeyondTheData", "--set data.validation=60000", 78, {"data.validation"}},
        BadRun{
            "ModelForLargerImages",
            "--set model.name=vgg16-small",
            78,
            {"vgg16-small", "32x32", "28x28"}},
        BadRun{"UnknownModel", "--set model.name=vgg", 78, {"model.name", "vgg16-small"}},
        BadRun{"UnknownData", "--set data.name=mnist", 78, {"data.name", "fashion-mnist"}},
        BadRun{
            "WorkersBeyondTheMemory",
            "--set 'model.hidden=[100000, 100000]'",
            78,
            {"workers: 4 workers need", "memory"}},
        BadRun{
            "AModelBeyondTheMemory",
            "--set model.name=resnet18 --set model.width=1000",
            78,
            {"memory"}},
        BadRun{
            "NoWeightsFile",
            "--set 'model.weights=@/nothing.safetensors'",
            66,
            {"nothing.safetensors"}},
        BadRun{
            "WeightsOfSomethingElse",
            "--set 'model.weights=@/file'",
            65,
            {"model.weights", "file", "header"}},
        BadRun{
            "BatchNormOfOneValue",
            "--set model.name=resnet18 --set model.stem=imagenet"
            " --set model.width=0.0625 --set data.batch_size=1"
            " --set 'method.rank={rule: fixed, rank: 1}'",
            78,
            {"data.batch_size", "single value"}},
        BadRun{"NoData", "--set 'data.root=@/nothing'", 66, {"nothing"}},
        BadRun{
            "DataInAFile", "--set 'data.root=@/file'", 66, {"/file: is a file; expected a folder"}},
        BadRun{"NoGpu", "--set device=cuda", 66, {"device", "cuda"}},
        BadRun{"UnknownDevice", "--set device=tpu", 78, {"device"}},
        BadRun{"OutputInAFile", "--output '@/file'", 74, {"file"}},
        BadRun{
            "Diverges",
            "--set optimizer.name=sgd --set optimizer.lr=1e30"
            " --set method.factor_lr_scale=1 --set train.clip_norm=0"
            " --set schedule.name=constant --set schedule.warmup_steps=0",
            70,
            {"step 2: the loss of worker", "nan", "optimizer.lr"}}),
    kCaseName);

// A run that is refused or fails must not look finished, and one that is refused
// leaves the folder of an earlier run as it was.
TEST(CliRun, AnEarlierRunOfTheName) {
  const TempFolder folder;
  expect_exit(0, small_run(folder));
  const std::string summary = content(folder.file("small/summary.json"));
  for (const char* refused :
       {"--set comm=nccl", "--set 'method.full_rank_steps=1 epoch'",
        "--set 'method.warmup_steps=1 epoch'"}) {
    expect_exit(78, small_run(folder, refused) + " --overwrite");
    EXPECT_EQ(content(folder.file("small/summary.json")), summary);
    // Of how workers talk only the machine of the run can tell.
    expect_exit(contains(refused, "comm") ? 0 : 78, "plan " + small_run(folder, refused));
  }
  expect_exit(
      70, small_run(folder, "--set optimizer.lr=1e38 --set optimizer.name=sgd --overwrite"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/summary.json")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/model.safetensors")));
}

// The weights of one run start another, of the same name and in its place.
TEST(CliRun, StartsFromTheWeightsOfAnEarlierRun) {
  const TempFolder folder;
  expect_exit(0, small_run(folder));
  const json before = json::parse(content(folder.file("small/summary.json")));
  const std::string given = folder.file("given.safetensors");
  std::filesystem::copy(folder.file("small/model.safetensors"), given);
  const std::string on = "--overwrite --set 'model.weights=" + given +
                         "' --set optimizer.lr=1e-9 --set schedule.warmup_steps=0 ";
  expect_exit(0, small_run(folder, on), {"mlp: the initial weights are those of " + given + "\n"});
  const json after = json::parse(content(folder.file("small/summary.json")));
  EXPECT_NEAR(after["accuracy"].get<double>(), before["accuracy"].get<double>(), 0.01);
  expect_exit(
      0, small_run(folder, on + "--set 'model.fresh=[fc3]'"), {", but not of fc3 (model.fresh)\n"});
  expect_exit(78, small_run(folder, on + "--set 'model.fresh=[fc9]'"), {"'fc9' matches no layer"});
}

}  // namespace
