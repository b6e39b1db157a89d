// Whether a run starts fresh or goes on: every choice and every refusal.
#include "train/resume.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "comm/run_workers.h"
#include "config/config.h"
#include "error_of.h"
#include "run_folder/checkpoint_files.h"
#include "special_file.h"
#include "temp_folder.h"
#include "train/run_differences.h"
#include "train/setup.h"
#include "weights/export.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;
using config::RunOptions;

class Resume : public ::testing::Test {
 protected:
  Resume() {
    options_.method.name = "ddp";  // the default needs two workers
  }
  // As a run of these options leaves it after `step` of 100 steps.
  void save(const std::string& run, std::int64_t step) const {
    const std::string config = config::to_yaml(options_);
    folder_.add(run + "/config.yaml", config);
    folder_.add(run + "/metrics.jsonl", "{}\n");
    comm::run_workers(1, 60, [&](comm::Communicator& world) {
      run_folder::CheckpointWriter writer(
          {folder_ / run, config, 100, weights::model_file_hash(options_)}, world, nullptr, {});
      state::State state;
      run_folder::Checkpoint about;
      about.step = step;
      about.run_steps = 100;
      ASSERT_TRUE(writer.save(about, state, 0));
    });
  }
  void finish(const std::string& run) const {
    folder_.add(run + "/config.yaml", config::to_yaml(options_));
    folder_.add(run + "/summary.json", "{}");
  }
  std::string place(const std::string& run, std::int64_t step) const {
    return folder_ / formatted("{}/checkpoints/{}", run, run_folder::step_folder(step));
  }
  ResumeChoice choose(const std::string& how, bool overwrite = false) {
    return choose_resume(how, overwrite, options_, own_, log_);
  }
  // The step from which it goes on; -1: fresh.
  std::int64_t step_of(const std::string& how, bool overwrite = false) {
    const ResumeChoice choice = choose(how, overwrite);
    return choice.from ? choice.from->step : -1;
  }
  void expect_refused(
      const std::string& how, int code, const std::string& says, bool overwrite = false) {
    expect_error([&] { choose(how, overwrite); }, ErrorKind(code), {says});
  }
  bool finished(const std::string& how, bool overwrite = false) const {
    return has_finished(how, overwrite, options_, own_);
  }

  const TempFolder folder_;
  const std::string own_ = folder_ / "own";
  RunOptions options_;
  Log log_{LogLevel::Quiet};
};

TEST_F(Resume, AnEmptyFolderIsAFreshStart) {
  for (const std::string how : {"none", "auto"}) {
    EXPECT_EQ(step_of(how), -1);
    EXPECT_EQ(step_of(how, true), -1);
    EXPECT_FALSE(finished(how));
  }
}

TEST_F(Resume, NoneRefusesToLoseCheckpoints) {
  save("own", 8);
  expect_refused("none", 78, "saved up to step 8; --resume auto continues it");
  EXPECT_EQ(step_of("none", true), -1);
}

TEST_F(Resume, AutoTakesTheNewestThatVerifies) {
  for (const std::int64_t step : {4, 8, 12}) {
    save("own", step);
  }
  folder_.add("own/checkpoints/step-0000000012/config.yaml", "workers: 1\n");
  const ResumeChoice choice = choose("auto");
  ASSERT_TRUE(choice.from);
  EXPECT_EQ(choice.from->step, 8);
  EXPECT_EQ(choice.from->folder, place("own", 8));
  EXPECT_TRUE(choice.is_own);
  EXPECT_EQ(step_of("auto", true), 8);  // a requeued job loses nothing
}

TEST_F(Resume, AFinishedRunIsReportedOrKept) {
  save("own", 100);
  finish("own");
  EXPECT_TRUE(finished("auto"));
  EXPECT_TRUE(finished("auto", true));
  EXPECT_FALSE(finished("none"));
  EXPECT_FALSE(finished(own_));
  for (const std::string& how : {std::string("none"), own_}) {
    expect_refused(how, 78, "holds a finished run with the same settings");
  }
  EXPECT_EQ(step_of("none", true), -1);
}

TEST_F(Resume, AFinishedRunWithOtherSettingsIsNotThisOne) {
  finish("own");
  options_.optimizer.lr *= 2;
  expect_error([&] { finished("auto"); }, ErrorKind::Config, {"optimizer.lr"});
  EXPECT_FALSE(finished("auto", true));
  expect_refused("none", 78, "holds a finished run with other settings:\n");
  folder_.add("own/config.yaml", "no: configuration\n");
  EXPECT_FALSE(finished("auto", true));
  expect_refused("none", 78, "its config.yaml is missing or cannot be read");
}

// Each is changed alone, in a run of two workers.
struct Changed {
  const char* key;
  bool is_free;
  std::function<void(RunOptions&)> change;
};

TEST_F(Resume, OnlyWhatLeavesTheTrainingAsItIsMayChange) {
  options_.workers = 1;
  options_.method.name = "ab";
  options_.method.sync = methods::SyncMode::OnlyB;
  save("own", 8);
  const RunOptions same = options_;
  const std::vector<Changed> cases = {
      {"name", true, [](auto& o) { o.name = "else"; }},
      {"output", true, [](auto& o) { o.output = "elsewhere"; }},
      {"workers", true, [](auto& o) { o.workers = 2; }},
      {"balance", true, [](auto& o) { o.balance.measures = true; }},
      {"device", true, [](auto& o) { o.device = device::DeviceChoice::Cuda; }},
      {"comm", true, [](auto& o) { o.comm = comm::BackEnd::Local; }},
      {"data.root", true, [](auto& o) { o.data.root = "/data"; }},
      {"train.threads", true, [](auto& o) { ++o.train.threads; }},
      {"checkpoint.keep", true, [](auto& o) { ++o.checkpoint.keep; }},
      {"evaluate.every", true, [](auto& o) { o.evaluate.every = Duration::steps(3); }},
      {"evaluate.norm_batches", true, [](auto& o) { o.evaluate.norm_batches = 5; }},
      {"seed", false, [](auto& o) { ++o.seed; }},
      {"data.batch_size", false, [](auto& o) { ++o.data.batch_size; }},
      {"data.augment", false, [](auto& o) { o.data.augment = data::AugmentName::Flip; }},
      {"data.validation", false, [](auto& o) { ++o.data.validation; }},
      {"model.hidden", false, [](auto& o) { o.model.hidden = {3}; }},
      {"method.group_size", false, [](auto& o) { o.method.group_size = 7; }},
      {"optimizer.lr", false, [](auto& o) { o.optimizer.lr *= 2; }},
      {"reducer.name", false, [](auto& o) { o.reducer.name = "thc"; }},
      {"order.name", false, [](auto& o) { o.order.name = "sequential"; }},
      {"train.epochs", false, [](auto& o) { ++o.train.epochs; }},
      {"train.accumulate", false, [](auto& o) { ++o.train.accumulate; }},
      {"train.precision", false, [](auto& o) { o.train.precision = at::kBFloat16; }}};
  for (const Changed& each : cases) {
    options_ = same;
    each.change(options_);
    if (each.is_free) {
      EXPECT_EQ(step_of("auto"), 8) << each.key;
    } else {
      expect_refused("auto", 78, formatted("\n  {}: ", each.key));
      EXPECT_EQ(step_of("auto", true), -1) << each.key;
    }
  }
  // With other workers, groups and batches may be others as well.
  for (const Changed& each : cases) {
    const std::string key = each.key;
    options_ = same;
    options_.workers = 2;
    each.change(options_);
    if (key == "method.group_size" || key == "data.batch_size" || key == "train.accumulate") {
      EXPECT_EQ(step_of("auto"), 8) << key;
    } else if (!each.is_free) {
      expect_refused("auto", 78, formatted("\n  {}: ", key));
    }
  }
}

TEST_F(Resume, LengthAndWorkersDoNotChangeAtOnce) {
  options_.workers = 1;
  save("own", 8);
  options_.train.epochs *= 2;
  EXPECT_EQ(step_of(own_), 8);
  options_.workers = 2;
  expect_refused(
      own_, 78,
      "\n  workers: 1 there, 2 now (a resume may change the length or the workers, but not both at "
      "once)\n");
}

TEST_F(Resume, AnExportedModelMustStillBeTheSame) {
  options_.model.name = "exported";
  options_.model.file = folder_ / "m.pt2";
  folder_.add("m.pt2", "before");
  save("own", 10);
  EXPECT_EQ(step_of("auto"), 10);
  folder_.add("m.pt2", "behind");  // of as many bytes
  const std::string says = "m.pt2 is no longer the file that the run began with";
  expect_refused("auto", 78, says);
  expect_refused(own_, 78, says);
  EXPECT_EQ(step_of("auto", /*overwrite=*/true), -1);
  // Whoever reads the model says that it is missing.
  fs::remove(*options_.model.file);
  EXPECT_EQ(step_of("auto"), 10);
  expect_error(
      [&] {
        nn::make_model(options_.model, {1, 2, 3, 4});
      },
      ErrorKind::MissingInput, {"model.file: " + folder_ / "m.pt2"});
}

// A run records what its machine took.
TEST_F(Resume, AutoKeepsThePrecisionAndTheMultiple) {
  options_.method.name = "ab";
  options_.method.sync = methods::SyncMode::OnlyB;
  options_.train.precision = at::kBFloat16;
  options_.method.rank.multiple = 8;
  save("own", 8);
  options_.train.precision.reset();
  options_.method.rank.multiple.reset();
  EXPECT_EQ(step_of("auto"), 8);
  options_.train.precision = at::kFloat;
  expect_refused("auto", 78, "\n  train.precision: bf16 there, fp32 now");
  options_.train.precision.reset();
  options_.method.rank.multiple = 1;
  expect_refused("auto", 78, "\n  method.rank.multiple: 8 there, 1 now");
}

TEST(TakeRecorded, OnlyWhatIsAutoNow) {
  config::RunOptions before;
  before.train.precision = at::kBFloat16;
  before.method.rank.multiple = 8;
  before.optimizer.lr = 0.25;
  config::RunOptions now;
  take_recorded(now, before);
  EXPECT_EQ(now.train.precision, at::kBFloat16);
  EXPECT_EQ(now.method.rank.multiple, 8);
  EXPECT_NE(now.optimizer.lr, 0.25);
  now.train.precision = at::kFloat;
  now.method.rank.multiple.reset();
  take_recorded(now, config::RunOptions());
  EXPECT_EQ(now.train.precision, at::kFloat);
  EXPECT_FALSE(now.method.rank.multiple);
}

TEST_F(Resume, ARefusalSaysBothValuesOfEachKey) {
  options_.optimizer.lr = 0.25;
  options_.seed = 3;
  save("own", 8);
  options_.optimizer.lr = 0.5;
  options_.seed = 4;
  const std::string what = expect_error(
      [&] { choose("auto"); }, ErrorKind::Config,
      {"\n  seed: 3 there, 4 now\n", "\n  optimizer.lr: 0.25 there, 0.5 now\n"});
  EXPECT_TRUE(what.starts_with(place("own", 8) + " belongs to")) << what;
}

TEST_F(Resume, AFolderOfItsOwnIsUsedInPlace) {
  save("own", 4);
  save("own", 8);
  fs::create_directory_symlink(place("own", 4), folder_ / "link");
  for (const auto& [how, step] : std::vector<std::pair<std::string, std::int64_t>>{
           {own_, 8},
           {own_ + "/", 8},
           {place("own", 4), 4},
           {place("own", 4) + "//", 4},
           {folder_ / "link", 4}}) {
    for (const bool overwrite : {false, true}) {
      const ResumeChoice choice = choose(how, overwrite);
      ASSERT_TRUE(choice.from) << how;
      EXPECT_EQ(choice.from->step, step);
      EXPECT_TRUE(choice.is_own) << how;
      open_folder(options_, own_, choice, log_);
      EXPECT_NO_THROW(run_folder::verify(*choice.from)) << how;
    }
  }
}

// They belong to a course that is left: otherwise `auto` would go on from them, and the oldest ones
// would be removed first.
TEST_F(Resume, CheckpointsAfterTheOneToContinueFromArePutAside) {
  for (const std::int64_t step : {4, 8, 12}) {
    save("own", step);
  }
  open_folder(options_, own_, choose(place("own", 4)), log_);
  for (const std::int64_t step : {8, 12}) {
    EXPECT_FALSE(fs::exists(place("own", step)));
    EXPECT_NO_THROW(run_folder::verify(run_folder::read_checkpoint(
        own_ + "/checkpoints.previous/" + run_folder::step_folder(step))));
  }
  EXPECT_EQ(step_of("auto"), 4);
}

// A start on top of newer checkpoints would remove it before it is read.
TEST_F(Resume, ACheckpointPutAsideIsNoneOfItsOwn) {
  save("own", 4);
  put_checkpoints_aside(own_, log_);
  const std::string aside = own_ + "/checkpoints.previous/" + run_folder::step_folder(4) + "/";
  const ResumeChoice choice = choose(aside);
  ASSERT_TRUE(choice.from);
  EXPECT_FALSE(choice.is_own);
  open_folder(options_, own_, choice, log_);
  EXPECT_NO_THROW(run_folder::verify(*choice.from));
  save("own", 8);
  expect_refused(aside, 78, "choose another --name", true);
  EXPECT_TRUE(fs::exists(aside) && fs::exists(place("own", 8)));
}

TEST_F(Resume, AFolderOfAnotherRunIsRead) {
  save("other", 4);
  save("other", 8);
  for (const auto& [how, step] : std::vector<std::pair<std::string, std::int64_t>>{
           {folder_ / "other", 8}, {place("other", 4), 4}}) {
    const ResumeChoice choice = choose(how);
    ASSERT_TRUE(choice.from) << how;
    EXPECT_EQ(choice.from->step, step);
    EXPECT_EQ(choice.from->folder, place("other", step));
    EXPECT_NO_THROW(run_folder::verify(*choice.from));
    EXPECT_FALSE(choice.is_own);
  }
  // It would replace what is here.
  save("own", 2);
  expect_refused(folder_ / "other", 78, "saved up to step 2");
  EXPECT_EQ(step_of(folder_ / "other", true), 8);
  options_.seed = 99;
  expect_refused(folder_ / "other", 78, place("other", 8) + " belongs to", true);
}

TEST_F(Resume, AFolderThatHasNothingIsRefused) {
  fs::create_directories(own_);
  fs::create_directories(folder_ / "empty");
  folder_.add("file", "");
  expect_refused(folder_ / "nowhere", 66, "there is no folder '");
  expect_refused(folder_ / "file", 66, "there is no folder '");
  expect_refused(folder_ / "empty", 66, "no usable checkpoint in '");
  expect_refused(own_, 66, "no usable checkpoint in '");
  save("other", 4);
  folder_.add("other/checkpoints/step-0000000004/config.yaml", "workers: 1\n");
  expect_refused(place("other", 4), 65, place("other", 4) + "/config.yaml");
}

// Neither finished nor with checkpoints.
TEST_F(Resume, ARunThatAchievedNothingMayBeTriedAgain) {
  folder_.add("own/config.yaml", config::to_yaml(options_));
  folder_.add("own/metrics.jsonl", "{}\n");
  EXPECT_EQ(step_of("none"), -1);
  EXPECT_EQ(step_of("auto"), -1);
  options_.seed = 5;
  expect_refused("none", 78, "holds an unfinished run with other settings:\n");
  EXPECT_EQ(step_of("none", true), -1);
  folder_.add("own/metrics.jsonl", "");
  EXPECT_EQ(step_of("none"), -1);
  folder_.add("own/model.safetensors", "");
  expect_refused("none", 78, "holds an unfinished run");
}

// Only a configuration that a user names may be a FIFO, which is waited for.
TEST_F(Resume, AFileOfTheRunThatIsNoneIsNotWaitedFor) {
  finish("own");
  for (const Special kind : kSpecials) {
    make_special(own_ + "/config.yaml", kind);
    expect_refused("none", 78, "its config.yaml is missing or cannot be read");
  }
}

TEST_F(Resume, TheModelOfARunThatIsMadeLongerStays) {
  const auto left_by = [&](bool changes_length) {
    ResumeChoice choice = choose(own_);
    choice.changes_length = changes_length;
    for (const char* file : {"summary.json", "model.safetensors", "model.sparse.safetensors"}) {
      folder_.add(std::string("own/") + file, "x");
    }
    open_folder(options_, own_, choice, log_);
    return std::array{
        fs::exists(own_ + "/summary.json"), fs::exists(own_ + "/model.safetensors"),
        fs::exists(own_ + "/model.sparse.safetensors")};
  };
  save("own", 5);
  EXPECT_EQ(left_by(true), (std::array{false, true, true}));
  fs::remove(own_ + "/model.safetensors");
  fs::remove(own_ + "/model.sparse.safetensors");
  EXPECT_EQ(left_by(false), (std::array{false, false, false}));
}

TEST_F(Resume, WeightsThatItsStartWouldRemoveAreRefused) {
  finish("own");
  finish("other");
  options_.model.weights = own_ + "/model.safetensors";
  expect_refused("none", 78, "model.weights: " + own_ + "/model.safetensors lies in ", true);
  options_.model.weights = folder_ / "other/model.safetensors";
  EXPECT_EQ(step_of("none", true), -1);
}

TEST_F(Resume, AFreshStartPutsCheckpointsAside) {
  save("own", 4);
  put_checkpoints_aside(own_, log_);
  EXPECT_FALSE(fs::exists(own_ + "/checkpoints"));
  const std::string aside = own_ + "/checkpoints.previous/" + run_folder::step_folder(4);
  EXPECT_NO_THROW(run_folder::verify(run_folder::read_checkpoint(aside)));
  // Without any there is nothing to keep, and what was kept stays.
  folder_.add("own/checkpoints/.unfinished-step-0000000005/x", "");
  put_checkpoints_aside(own_, log_);
  EXPECT_FALSE(fs::exists(own_ + "/checkpoints"));
  EXPECT_TRUE(fs::exists(aside));
  // The next ones take their place.
  save("own", 8);
  put_checkpoints_aside(own_, log_);
  EXPECT_FALSE(fs::exists(aside));
  EXPECT_TRUE(fs::exists(own_ + "/checkpoints.previous/" + run_folder::step_folder(8)));
}

// Killed before the newer ones had taken the place of the older ones.
TEST_F(Resume, WhatAKilledStartWasPuttingAsideIsBackInItsPlace) {
  save("own", 4);
  put_checkpoints_aside(own_, log_);
  save("own", 8);
  const std::string previous = own_ + "/checkpoints.previous";
  const std::string killed = own_ + "/.obsolete-checkpoints.previous";
  fs::rename(previous, killed);
  EXPECT_EQ(step_of("auto"), 8);
  EXPECT_TRUE(fs::exists(previous + "/" + run_folder::step_folder(4)));
  EXPECT_FALSE(fs::exists(killed));
  // Killed after that.
  fs::rename(previous, killed);
  put_checkpoints_aside(own_, log_);
  EXPECT_TRUE(fs::exists(previous + "/" + run_folder::step_folder(8)));
  EXPECT_FALSE(fs::exists(killed));
}

}  // namespace
}  // namespace abtrain::train
