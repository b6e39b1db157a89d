// Runs that branch off others: where they start, what they learn, and which are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "program.h"
#include "run_folder_test.h"

namespace {

using namespace abtrain;
namespace fs = std::filesystem;

class CliBranch : public CliRunFolder {};

TEST_F(CliBranch, ABranchStartsFromACheckpoint) {
  train(0, "--set checkpoint.keep=5");
  const auto before = files();
  const std::string run = folder_.file("runs/toy");
  const auto of = [&](const std::string& file) { return content(folder_.file("runs/" + file)); };
  // With nothing changed, it is the run that was never stopped.
  const std::string from = "--branch-from '" + run + "@step-4' ";
  expect_exit(0, from + "--name same");
  EXPECT_TRUE(of("same/model.safetensors") == before.at(path("model.safetensors")));
  // Where it came from.
  expect_has(of("same/config.yaml"), "branch_from: \"" + run + "@step-4\"\n");
  const auto summary = nlohmann::json::parse(of("same/summary.json"));
  EXPECT_EQ(summary["branched_from"], (nlohmann::json{{"run", run}, {"step", 4}}));
  EXPECT_FALSE(contains(before.at(path("summary.json")), "branched_from"));
  const std::string events = of("same/metrics.jsonl");
  const auto first = nlohmann::json::parse(events.substr(0, events.find('\n')));
  EXPECT_EQ(first["checkpoint"], run + "/checkpoints/step-0000000004");

  const std::string fast = from + "optimizer.lr=0.5 train.steps=12 --name fast ";
  expect_exit(0, fast, {"@step-4 for steps 5 to 12; the learning rate goes on at "});
  const std::string model = of("fast/model.safetensors");
  EXPECT_FALSE(model == before.at(path("model.safetensors")));
  EXPECT_TRUE(files() == before);
  expect_exit(0, fast + "--resume auto", {"this run has finished"});

  // Interrupted, it goes on by itself.
  fs::rename(run, run + ".gone");
  for (const char* gone : {"summary.json", "model.safetensors", "checkpoints/step-0000000012"}) {
    ASSERT_TRUE(fs::remove_all(folder_.file(std::string("runs/fast/") + gone)) > 0);
  }
  fs::remove_all(folder_.file("runs/fast/checkpoints/step-0000000008"));
  EXPECT_TRUE(fs::exists(folder_.file("runs/fast/checkpoints/step-0000000004")));
  expect_exit(0, "--resume '" + folder_.file("runs/fast") + "'");
  EXPECT_TRUE(of("fast/model.safetensors") == model);
  expect_has(of("fast/config.yaml"), "branch_from: \"" + run + "@step-4\"\n");
}

// The message gives the lengths in steps, and with these the branch runs.
TEST_F(CliBranch, SharesOfTheRunBecomeSteps) {
  train(0, "--set method.name=diloco --set 'method.warmup_steps=25 %' --set method.sync_every=2");
  const std::string longer =
      "--branch-from '" + folder_.file("runs/toy") + "@step-4' train.steps=16 --name longer";
  expect_exit(78, longer, {"give them in steps instead: method.warmup_steps=2\n"});
  expect_exit(0, longer + " method.warmup_steps=2");
}

TEST_F(CliBranch, ARunMayBeTheWorkingFolder) {
  train(0);
  const auto here = [&](const std::string& folder, const std::string& arguments) {
    expect_exit(0, arguments, {}, "cd '" + path(folder) + "' && ");
  };
  here("", "--branch-from .@step-4 optimizer.lr=0.5 --name beside");
  EXPECT_TRUE(fs::exists(folder_.file("runs/beside/summary.json")));
  here("", "--resume . train.steps=12");
  EXPECT_EQ(steps(), 12);
  here("checkpoints", "--resume .. train.steps=16");
  EXPECT_EQ(steps(), 16);
}

// Even before it has a checkpoint of its own: the run may have gone on since.
TEST_F(CliBranch, ABranchRemembersItsCheckpoint) {
  train(0, "--set checkpoint.keep=5");
  const std::string newest = path("checkpoints/step-0000000008");
  fs::rename(newest, folder_.file("later"));
  const std::string branch =
      "--branch-from '" + folder_.file("runs/toy") + "' optimizer.lr=0.5 --name new --resume auto ";
  expect_exit(0, branch, {"toy@step-4 for steps 5 to 8"});
  const std::string model = content(folder_.file("runs/new/model.safetensors"));
  fs::rename(folder_.file("later"), newest);
  for (const char* gone : {"summary.json", "model.safetensors", "checkpoints"}) {
    ASSERT_TRUE(fs::remove_all(folder_.file(std::string("runs/new/") + gone)) > 0);
  }
  expect_exit(0, branch, {"toy@step-4 for steps 5 to 8"});
  EXPECT_TRUE(content(folder_.file("runs/new/model.safetensors")) == model);
  // Begun anew, it takes what is the newest now.
  expect_exit(
      78, replaced(branch, "--resume auto", "--overwrite"),
      {"train.steps: ", "toy@step-8 has done 8 steps already"});
}

TEST_F(CliBranch, ABranchThatDoesNotFitIsRefused) {
  train(0, "--set checkpoint.keep=5");
  const std::string run = folder_.file("runs/toy");
  const std::string from = "--branch-from '" + run + "@step-4' ";
  const std::string named = from + "--name new ";
  expect_exit(2, from + "optimizer.lr=1", {"--name NEW"});
  expect_exit(2, named + "--resume '" + run + "'", {"give one of them"});
  expect_exit(2, named + "--fast-dev-run", {"leave out --branch-from"});
  expect_exit(66, replaced(named, "@step-4", "@step-5"), {"there are last, step-8, step-4"});
  expect_exit(66, replaced(named, "toy@", "none@"), {"branch-from: expected RUN"});
  expect_exit(
      66, replaced(named, "@step-4", "/checkpoints/step-0000000004"),
      {"branch_from: expected RUN"});
  expect_exit(78, from + "--name toy --overwrite", {"this run's own folder"});
  expect_exit(78, named + "train.steps=4", {"train.steps: ", "has done 4 steps already"});
  const std::string misfit = expect_exit(
      78, named + "'model.hidden=[8, 8]' workers=1 optimizer.lr=1",
      {"\n  model.hidden: [16, 16] there, [8, 8] now\n", "\n  workers: 2 there, 1 now\n"});
  EXPECT_FALSE(contains(misfit, "optimizer.lr"));
  EXPECT_FALSE(fs::exists(folder_.file("runs/new/config.yaml")));
  // A resume that is refused for such keys names the way.
  const std::string way = "use --branch-from " + run + "@step-8 with another --name";
  refused("--set optimizer.lr=0.5 --resume auto", {way, "and a larger train.steps, or an earlier"});
  for (const char* gone : {"summary.json", "model.safetensors"}) {
    fs::remove(path(gone));
  }
  refused("--set optimizer.lr=0.5 --resume auto", {way});
  expect_exit(78, "--resume '" + run + "' optimizer.lr=0.5", {way});
  const std::string other = train(78, "--set seed=7 --set optimizer.lr=0.5 --resume auto");
  EXPECT_FALSE(contains(other, "--branch-from"));
}

// Also the rate that recovers after a switch of phase.
TEST_F(CliBranch, ABranchHasTheRatesOfItsKeys) {
  const std::string ab =
      "--set method.name=ab --set method.group_size=1 --set method.warmup_steps=4 "
      "--set method.sync_every=6 --set method.full_rank_steps=2 --set method.ramp=reference "
      "--set method.rebound_steps=5 --set 'method.rank={rule: fixed, rank: 4}' "
      "--set train.steps=16 --set checkpoint.every=6 --set checkpoint.keep=5 ";
  train(0, ab);
  train(0, ab + "--set optimizer.lr=0.01 --name whole");
  expect_exit(
      0, "--branch-from '" + folder_.file("runs/toy") + "@step-6' optimizer.lr=0.01 --name new");
  const auto rates = [&](const std::string& name) {
    std::map<int, double> all;
    for (const std::string& line : split_text(content(folder_.file("runs/" + name)), '\n')) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object() && event["event"] == "step" && event["step"] > 6) {
        all[event["step"]] = event["lr"];
      }
    }
    return all;
  };
  const auto branched = rates("new/metrics.jsonl");
  EXPECT_EQ(branched.size(), 10U);
  EXPECT_EQ(branched, rates("whole/metrics.jsonl"));
  EXPECT_NE(branched, rates("toy/metrics.jsonl"));
}

}  // namespace
