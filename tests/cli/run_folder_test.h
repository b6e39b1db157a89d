// A test with a configuration of a small run, its run folder, and what is in that.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "program.h"
#include "small_run.h"
#include "temp_folder.h"

namespace abtrain {

inline constexpr const char* kToyRun =
    "name: toy\n"
    "data: {name: fashion-mnist, subset: 256, pool: 7, batch_size: 16}\n"
    "model: {name: mlp, hidden: [16, 16]}\n"
    "workers: 2\n"
    "device: cpu\n"
    "method: {name: ddp}\n"
    "train: {steps: 8, threads: 1, log_every: 1}\n"
    "checkpoint: {every: 4 steps}\n"
    "evaluate: {every: 0}\n";

class CliRunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("SLURM_JOB_ID");
    folder_.add("base.yaml", kToyRun);
  }
  // What it says, and all `parts` are in it.
  std::string train(
      int code, const std::string& more = "", const std::vector<std::string>& parts = {}) const {
    return expect_exit(
        code,
        "--config '" + folder_.file("base.yaml") + "' --output '" + folder_.file("runs") + "' " +
            more,
        parts);
  }
  std::string path(const std::string& name = "") const {
    return folder_.file("runs/toy/" + name);
  }
  // All files of the run and what they hold.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path())) {
      out[file.path().string()] = file.is_regular_file() ? content(file.path()) : "";
    }
    return out;
  }
  int steps() const {
    return nlohmann::json::parse(files().at(path("summary.json")))["steps"];
  }
  // Refused, with what it says, and nothing is changed.
  void refused(const std::string& more, const std::vector<std::string>& says) const {
    const auto before = files();
    const std::string said = train(78, more, says);
    expect_has(said, "--name");
    expect_has(said, "--overwrite");
    EXPECT_TRUE(files() == before) << more;
  }

  const TempFolder folder_;
};

}  // namespace abtrain
