// Checkpoints that say what cannot be, though their sizes and hashes are right.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "comm/run_workers.h"
#include "config/config.h"
#include "damaged_checkpoint.h"
#include "error_of.h"
#include "run_folder/checkpoint.h"
#include "special_file.h"
#include "temp_folder.h"
#include "toy_run.h"
#include "train/resume.h"
#include "weight_file.h"

namespace abtrain::run_folder {
namespace {

using nlohmann::ordered_json;
using testing::toy_options;

// Of two workers with one state, after step 4 and after step 8 of 10.
void save_two(const TempFolder& folder) {
  config::RunOptions options = toy_options(2, {});
  options.method.name = "ddp";
  const CheckpointWriter::Options place{folder.path(), config::to_yaml(options), 5};
  comm::run_workers(2, 60, [&](comm::Communicator& world) {
    CheckpointWriter writer(place, world, nullptr, {});
    for (const std::int64_t step : {4, 8}) {
      state::State state;
      at::Tensor tensor = at::ones({3});
      auto archive = state::Archive::saving(state);
      archive.tensor("t", tensor, state::Owner::Replicas);
      Checkpoint about;
      about.step = step;
      about.run_steps = 10;
      EXPECT_TRUE(writer.save(about, state, 0));
    }
  });
}

// Of the newest checkpoint that can be used; -1 if there is none.
std::int64_t newest_step(const TempFolder& folder) {
  Log log(LogLevel::Quiet);
  const auto found = newest_checkpoint(folder.path(), log);
  return found ? found->step : -1;
}

struct Senseless {
  const char* name;
  Change change;
  const char* says;
};

class SenselessManifest : public ::testing::TestWithParam<Senseless> {};

TEST_P(SenselessManifest, IsNamedAndTheOneBeforeIsUsed) {
  const TempFolder folder;
  save_two(folder);
  const std::string newest = place_of(folder, 8);
  ASSERT_EQ(newest_step(folder), 8);
  change_manifest(newest, GetParam().change);
  EXPECT_EQ(newest_step(folder), 4);
  Log log(LogLevel::Quiet);
  expect_error(
      [&] { train::choose_resume(newest, false, {}, folder.path(), log); }, ErrorKind::DamagedData,
      {newest, GetParam().says});
}

INSTANTIATE_TEST_SUITE_P(
    All, SenselessManifest,
    ::testing::Values(
        Senseless{
            "Step64", [](ordered_json& m) { m["step"] = 18446744073709551616.0; },
            "step: expected a whole number from 0 to 10"},
        Senseless{
            "StepOfUint64", [](ordered_json& m) { m["step"] = 18446744073709551615U; },
            "step: expected a whole number"},
        Senseless{
            "NegativeStep", [](ordered_json& m) { m["step"] = -8; },
            "step: expected a whole number from 0 to 10, got -8"},
        Senseless{
            "OtherStep", [](ordered_json& m) { m["step"] = 9; },
            "step: expected the step in the folder's name, got 9"},
        Senseless{"NoRunSteps", [](ordered_json& m) { m["run_steps"] = 0; }, "run_steps: expected"},
        Senseless{
            "FewRunSteps", [](ordered_json& m) { m["run_steps"] = 7; },
            "step: expected a whole number from 0 to 7, got 8"},
        Senseless{
            "MoreWorkers", [](ordered_json& m) { m["workers"] = 3; },
            "leads: expected for each of 3 workers"},
        Senseless{
            "MoreWorkersAndLeads",
            [](ordered_json& m) {
              m["workers"] = 3;
              m["leads"] = {0, 0, 0};
            },
            "files: expected config.yaml and one file for each of 3 workers"},
        Senseless{
            "FewerWorkers",
            [](ordered_json& m) {
              m["workers"] = 1;
              m["leads"] = {0};
              m["files"].erase("worker-00001.safetensors");
            },
            "1 in manifest.json and 2 in config.yaml"},
        Senseless{
            "ManyWorkers",
            [](ordered_json& m) {
              m["workers"] = 1'000'000;
              m["leads"] = std::vector<int>(1'000'000, 0);
            },
            "workers: expected a whole number from 1 to 65536"},
        Senseless{
            "LeadOutside",
            [](ordered_json& m) {
              m["leads"] = {0, 2};
            },
            "leads"},
        Senseless{
            "LeadNegative",
            [](ordered_json& m) {
              m["leads"] = {-1, 0};
            },
            "leads"},
        Senseless{
            "LeadIsNoLead",
            [](ordered_json& m) {
              m["leads"] = {1, 0};
            },
            "leads"},
        Senseless{
            "LeadOfInt64",
            [](ordered_json& m) {
              m["leads"] = {0, 4294967296};
            },
            "leads"},
        Senseless{
            "Accuracy", [](ordered_json& m) { m["validation_accuracy"] = 1e300; },
            "validation_accuracy: expected a number up to 1"},
        Senseless{
            "AccuracyIsText", [](ordered_json& m) { m["validation_accuracy"] = "high"; },
            "validation_accuracy"},
        Senseless{
            "NegativeMetrics", [](ordered_json& m) { m["metrics_bytes"] = -1; }, "metrics_bytes"},
        Senseless{
            "FileElsewhere",
            [](ordered_json& m) {
              m["files"]["../../../etc/passwd"] = m["files"]["worker-00001.safetensors"];
              m["files"].erase("worker-00001.safetensors");
            },
            "files.worker-00001.safetensors.bytes: expected"},
        Senseless{
            "FilesIsAList",
            [](ordered_json& m) {
              m["files"] = {1, 2, 3};
            },
            "files: expected an object"},
        Senseless{
            "Deep",
            [](ordered_json& m) {
              for (int i = 0; i < 100; ++i) {
                m = {{"a", m}};
              }
            },
            "nested more than"}),
    [](const auto& test) { return test.param.name; });

TEST(DamagedCheckpoint, AHeaderOrStateThatIsBrokenIsLeftAside) {
  const std::vector<std::string> headers = {
      std::string(100'000, '['), R"({"__metadata__":{"state":"[["}})", R"({"__metadata__":{}})",
      R"({"__metadata__":{"state":"{}"},"a":{"dtype":"F32","shape":[1e999]}})"};
  for (const std::string& header : headers) {
    const TempFolder folder;
    save_two(folder);
    const std::string newest = place_of(folder, 8);
    write_file(newest + "/" + worker_file(1), weights::raw_file(header));
    mend_mark(newest, worker_file(1));
    EXPECT_EQ(newest_step(folder), 4) << header.substr(0, 40);
  }
}

// Copies with hashes that are right, as of a script that puts files together.
TEST(DamagedCheckpoint, AFileOfAnotherStepOrWorkerIsLeftAside) {
  for (const auto& [step, worker, says] :
       {std::tuple(4, 1, "expected the state of step 8, found that of 4"),
        std::tuple(8, 0, "expected the state of worker 1, found that of 0")}) {
    const TempFolder folder;
    save_two(folder);
    const std::string newest = place_of(folder, 8);
    const std::string file = newest + "/" + worker_file(1);
    std::filesystem::copy_file(
        place_of(folder, step) + "/" + worker_file(worker), file,
        std::filesystem::copy_options::overwrite_existing);
    mend_mark(newest, worker_file(1));
    EXPECT_EQ(error_of([&] { verify(read_checkpoint(newest)); }), Thrown(65, file + ": " + says));
    EXPECT_EQ(newest_step(folder), 4);
  }
}

TEST(DamagedCheckpoint, WhatIsNoFileOrHugeIsLeftAside) {
  for (const std::string& name :
       {std::string(config::kManifest), std::string(config::kConfig), worker_file(1)}) {
    for (const Special kind : kSpecials) {
      const TempFolder folder;
      save_two(folder);
      make_special(place_of(folder, 8) + "/" + name, kind);
      EXPECT_EQ(newest_step(folder), 4) << name;
    }
  }
}

// A key of the state and what it becomes.
struct WrongValue {
  const char* name;
  const char* method;
  const char* order;
  const char* key;
  ordered_json value;
};

class WrongState : public ::testing::TestWithParam<WrongValue> {};

TEST_P(WrongState, IsDamagedDataThatNamesTheCheckpoint) {
  const TempFolder folder;
  config::RunOptions options = toy_options(1, 1);
  options.method.name = GetParam().method;
  options.method.sync = methods::SyncMode::OnlyB;  // one worker is one group
  options.method.warmup_steps = Duration::steps(2);
  options.method.sync_every = Duration::steps(3);
  options.method.full_rank_steps = Duration::steps(1);
  options.order.name = GetParam().order;
  options.train.steps = 12;
  options.evaluate.every = Duration::steps(0);
  options.checkpoint.every = Duration::steps(7);
  const data::Dataset dataset = testing::toy_dataset(64);
  const CheckpointWriter::Options place{folder.path(), config::to_yaml(options), 5};
  const data::Examples none;
  train::TrainInputs inputs{options, dataset, none, at::kCPU};
  const auto train = [&] {
    comm::run_workers(
        1, 60, [&](comm::Communicator& world) { train::train_worker(world, inputs); });
  };
  inputs.checkpoints = &place;
  train();
  const std::string checkpoint = place_of(folder, 7);
  change_values(checkpoint, [&](ordered_json& values) {
    ASSERT_TRUE(values.contains(GetParam().key));
    values[GetParam().key] = GetParam().value;
  });
  const Checkpoint from = read_checkpoint(checkpoint);
  verify(from);
  inputs.resume = &from;
  inputs.checkpoints = nullptr;
  expect_error(train, ErrorKind::DamagedData, {checkpoint});
}

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

INSTANTIATE_TEST_SUITE_P(
    All, WrongState,
    ::testing::Values(
        WrongValue{"Text", "ab", "shuffle", "seconds", "x"},
        WrongValue{"Seconds", "ab", "shuffle", "seconds", 1e300},
        WrongValue{"Fraction", "ab", "shuffle", "event_step", 1.5},
        WrongValue{"Traffic", "ab", "shuffle", "traffic", {{"world", {1}}}},
        WrongValue{"Phase", "ab", "shuffle", "ab.phase", "c"},
        WrongValue{"Ranks", "ab", "shuffle", "ab.ranks", {kHuge, 5, 5}},
        WrongValue{"NegativeRanks", "ab", "shuffle", "ab.ranks", {-1, 5, 5}},
        WrongValue{"FewRanks", "ab", "shuffle", "ab.ranks", {5}},
        WrongValue{"Layers", "ab", "shuffle", "ab.layers", {{"a", 1}}},
        WrongValue{
            "FirstRank",
            "ab",
            "shuffle",
            "ab.layers",
            {{"fc1", 64, 24, 5, 1.0, 1.0, 99}, {"fc2", 24, 20, 5, 1.0, 1.0, 5}}},
        WrongValue{"OtherRank", "ab", "shuffle", "ab.ranks", {4, 5, 5}},
        WrongValue{"Strides", "ddp", "shuffle", "block.strides.fc1.weight", {kHuge, 1}},
        WrongValue{"Fragment", "diloco", "shuffle", "local.fragment", 99},
        WrongValue{"Epoch", "ddp", "grab", "order.epoch", kHuge},
        WrongValue{"NegativeEpoch", "ddp", "grab", "order.epoch", -7},
        WrongValue{"Place", "ddp", "grab", "order.place", 1},
        WrongValue{"Units", "ddp", "grab", "order.units", {3, 1, 0, 0}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain::run_folder
