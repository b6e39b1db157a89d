// Whole runs whose data becomes shorter between two steps.
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "error_of.h"
#include "run_folder/checkpoint.h"
#include "temp_folder.h"
#include "toy_run.h"
#include "train/session.h"
#include "weight_file.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;

class ShorterRun : public ::testing::TestWithParam<int> {};

// Bytes that the file loses. Those of its last page are lost without a signal.
TEST_P(ShorterRun, EndsAndNamesTheFile) {
  const TempFolder folder;
  const std::string file = folder / "train.safetensors";
  weights::write_weights(
      file, {{"x", at::rand({4000, 20})}, {"y", at::arange(4000, at::kLong).remainder(3)}});
  config::RunOptions options = testing::toy_options(2, {});
  options.name = "shorter";
  options.output = folder / "runs";
  options.device = device::DeviceChoice::Cpu;
  options.data.name = "arrays";
  options.data.root = folder.path();
  options.method.name = "ddp";
  options.checkpoint.every = Duration::steps(5);
  TrainHooks hooks;
  hooks.before_step = [&](int rank, std::int64_t step, nn::Model&) {
    if (rank == 1 && step == 12) {
      fs::resize_file(file, fs::file_size(file) - static_cast<std::uintmax_t>(GetParam()));
    }
  };
  Log log(LogLevel::Quiet);
  const std::string message = expect_error(
      [&] { train(options, {.hooks = hooks}, log); }, ErrorKind::Io,
      {file, "another program shortened the file"});
  const std::string run = folder / "runs/shorter";
  const auto failure = nlohmann::json::parse(read_file(run + "/failure.json"));
  EXPECT_EQ(failure["exit_code"], 74);
  EXPECT_EQ(failure["message"], message);
  EXPECT_FALSE(fs::exists(run + "/summary.json"));
  for (const run_folder::Checkpoint& checkpoint : run_folder::list_checkpoints(run)) {
    EXPECT_LE(checkpoint.step, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, ShorterRun, ::testing::Values(300'000, 3));

}  // namespace
}  // namespace abtrain::train
