// A folder with a sweep of small networks on a part of Fashion-MNIST.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"
#include "temp_folder.h"

namespace abtrain {

namespace fs = std::filesystem;

inline constexpr const char* kBase =
    "data: {name: fashion-mnist, subset: 256, pool: 7, batch_size: 16}\n"
    "model: {name: mlp, hidden: [16, 16]}\n"
    "workers: 2\n"
    "device: cpu\n"
    "method:\n"
    "  name: ab\n"
    "  group_size: 1\n"
    "  warmup_steps: 2\n"
    "  sync_every: 4\n"
    "  full_rank_steps: 1\n"
    "  rank: {rule: fixed, rank: 2}\n"
    "train: {steps: 8, threads: 1, log_every: 1}\n"
    "checkpoint: {every: 4 steps}\n"
    "evaluate: {every: 0}\n";

using States = std::vector<std::string>;

class CliSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    // As in no job of Slurm, and with nothing but the CPU.
    unsetenv("SLURM_ARRAY_TASK_ID");
    folder_.add("base.yaml", kBase);
  }

  std::string add_sweep(const std::string& text) const {
    return folder_.add("toy.yaml", "base: base\n" + text);
  }
  std::string arguments(const std::string& more = "") const {
    return "sweep '" + folder_.file("toy.yaml") + "' --output '" + folder_.file("runs") + "' " +
           more;
  }
  // Rows of index, point, folder and state.
  std::vector<std::vector<std::string>> list() const {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(output_of(arguments("--list")));
    for (std::string line; std::getline(lines, line);) {
      rows.push_back(split_text(line, '\t'));
      EXPECT_EQ(rows.back().size(), 4U) << line;
    }
    return rows;
  }
  std::vector<std::string> states() const {
    std::vector<std::string> out;
    for (const auto& row : list()) {
      out.push_back(row.at(3));
    }
    return out;
  }
  // When the files of all finished points were written.
  std::map<std::string, fs::file_time_type> times() const {
    std::map<std::string, fs::file_time_type> out;
    for (const auto& row : list()) {
      if (row.at(3) == "missing") {
        continue;
      }
      for (const auto& file : fs::recursive_directory_iterator(row.at(2))) {
        out[file.path().string()] = fs::last_write_time(file);
      }
    }
    return out;
  }
  std::string script(const std::string& text) const {
    return "bash '" + folder_.add("script.sh", text) + "'";
  }

  const TempFolder folder_;
};

}  // namespace abtrain
