// What a run will need of the disk, and where its model goes if there is nothing left.
#include "train/disk_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "error_of.h"
#include "said_log.h"
#include "train/whole_runs.h"
#include "with_variables.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;

double bytes_in(const fs::path& folder) {
  double bytes = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    bytes += file.is_regular_file() ? static_cast<double>(file.file_size()) : 0;
  }
  return bytes;
}

struct UseCase {
  const char* name;
  const char* method;
  int workers;
  const char* reducer = "plain";
  std::int64_t group_size = 1;
  methods::Trains trains = methods::Trains::One;
};

class DiskUseOfRuns : public ::testing::TestWithParam<UseCase> {};

TEST_P(DiskUseOfRuns, IsAboutWhatIsPlanned) {
  const UseCase& use_case = GetParam();
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = testing::toy_options(use_case.workers, use_case.group_size);
  o.model.hidden = {256, 256};
  o.method.name = use_case.method;
  o.method.trains = use_case.trains;
  o.method.rank.rank = 64;
  o.reducer.name = use_case.reducer;
  o.train.steps = 21;
  o.checkpoint.every = Duration::steps(3);
  o.checkpoint.keep = 5;
  o.evaluate.every = Duration::steps(0);
  const TempFolder folder;
  const run_folder::CheckpointWriter::Options place{folder.path(), config::to_yaml(o), 99};
  const data::Examples none;
  TrainInputs inputs{o, dataset, none, at::kCPU};
  inputs.checkpoints = &place;
  const auto results = train_threads(inputs);
  double largest = 0;
  for (const auto& checkpoint : run_folder::list_checkpoints(folder.path())) {
    largest = std::max(largest, bytes_in(checkpoint.folder));
  }
  const DiskUse use = disk_use(o, dataset, config::run_length(o, dataset.train.size()));
  EXPECT_GT(use.checkpoint, 0.8 * largest);
  EXPECT_LT(use.checkpoint, 1.2 * largest);
  EXPECT_EQ(use.checkpoints, 6);  // of the seven, five and the next
  const double model =
      static_cast<double>(weights::save_model(folder / "model.safetensors", *results[0].model));
  EXPECT_GT(use.model, 0.95 * model);
  EXPECT_LT(use.model, 1.05 * model);
}

INSTANTIATE_TEST_SUITE_P(
    All, DiskUseOfRuns,
    ::testing::Values(
        UseCase{"Ddp", "ddp", 2}, UseCase{"Residuals", "ddp", 3, "int4"},
        UseCase{"LocalSgd", "local-sgd", 3}, UseCase{"Diloco", "diloco", 2}, UseCase{"Ab", "ab", 2},
        UseCase{"AbOfFour", "ab", 4}, UseCase{"AbInGroups", "ab", 4, "plain", 2},
        UseCase{"Both", "ab", 4, "plain", 1, methods::Trains::Both}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(DiskUse, CountsTheCheckpointsThatThereWillBe) {
  data::Dataset dataset = testing::toy_dataset(64);
  config::RunOptions o = testing::toy_options(2, 1);
  const auto count = [&](Duration every, std::int64_t keep, std::int64_t validation = 0) {
    o.checkpoint.every = every;
    o.checkpoint.keep = keep;
    o.data.validation = validation;
    o.evaluate.every = Duration::steps(10);
    return disk_use(o, dataset, {.steps_per_epoch = 20, .steps = 60}).checkpoints;
  };
  EXPECT_EQ(count(Duration::steps(10), 2), 3);
  EXPECT_EQ(count(Duration::steps(10), 2, 8), 4);  // and the best
  dataset.validation = dataset.test;               // of its own
  EXPECT_EQ(count(Duration::steps(10), 2), 4);
  dataset.validation = {};
  EXPECT_EQ(count(Duration::steps(10), 100), 6);
  EXPECT_EQ(count(Duration::epochs(1), 100), 3);
  EXPECT_EQ(count(Duration::steps(100), 2), 0);
  EXPECT_EQ(count(Duration::steps(0), 2), 0);
  EXPECT_EQ(count(Duration::steps(0), 2, 8), 4);
}

TEST(CheckSpace, WarnsOfADiskThatIsTooSmall) {
  const TempFolder folder;
  SaidLog said(LogLevel::Warning);
  check_space({.model = 1, .checkpoint = 1, .checkpoints = 3}, folder.path(), said.log());
  check_space({.model = 1e18}, folder / "none", said.log());  // nobody can tell
  EXPECT_EQ(said.text(), "");
  check_space({.model = 1e18, .checkpoint = 2e18, .checkpoints = 3}, folder.path(), said.log());
  expect_has(
      said.text(),
      formatted(
          "of free space, but this run needs about {} there: {} for model.safetensors and {} for "
          "each of 3 checkpoints",
          human_bytes(7e18), human_bytes(1e18), human_bytes(2e18)));
}

class SaveModelOfRun : public ::testing::Test {
 protected:
  SaveModelOfRun() {
    fs::create_directories(run_ + "/model.safetensors/in the way");
    fs::create_directories(temporary_);
  }
  static std::unique_ptr<nn::Model> model() {
    auto made = nn::make_model(testing::toy_options(2, 1).model, testing::toy_dataset(8));
    made->initialize(nn::InitName::Kaiming, 1);
    return made;
  }
  std::string error() const {
    const testing::WithVariables variables{{"TMPDIR", temporary_}};
    return expect_error([&] { save_model_of_run(run_, *model(), {}); }, ErrorKind::Io);
  }

  const TempFolder folder_;
  const std::string run_ = folder_ / "run";
  const std::string temporary_ = folder_ / "temporary";
};

TEST_F(SaveModelOfRun, KeepsTheModelInATemporaryFolder) {
  const std::string what = error();
  expect_has(what, "cannot write '" + run_ + "/model.safetensors'");
  const auto found = list_folder(temporary_);
  ASSERT_EQ(found.size(), 1U);
  const std::string place = found[0].string() + "/model.safetensors";
  expect_has(what, "The trained model is in " + place + " instead");
  EXPECT_NO_THROW(weights::load_model(place, *model()));
}

TEST_F(SaveModelOfRun, SaysThatTheModelIsLost) {
  fs::remove(temporary_);
  const std::string what = error();
  expect_has(what, "cannot write '" + run_ + "/model.safetensors'");
  expect_has(what, "could not be saved in a temporary folder either: cannot use '" + temporary_);
}

TEST_F(SaveModelOfRun, WritesIntoTheRunFolderWhereItCan) {
  fs::remove_all(run_ + "/model.safetensors");
  save_model_of_run(run_, *model(), {});
  EXPECT_TRUE(fs::is_regular_file(run_ + "/model.safetensors"));
  EXPECT_TRUE(list_folder(temporary_).empty());
}

}  // namespace
}  // namespace abtrain::train
