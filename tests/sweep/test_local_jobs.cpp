// The points of a sweep, trained by a script in the place of abtrain.
#include "sweep/local_jobs.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/signals.h"
#include "config/config.h"
#include "error_of.h"
#include "said_log.h"
#include "temp_folder.h"

namespace abtrain::sweep {
namespace {

namespace fs = std::filesystem;

class LocalJobs : public ::testing::Test {
 protected:
  LocalJobs() {
    program("finish");
  }

  // Point i has the seed i + 1 and the label "seed=<i + 1>".
  void add_points(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      PointRun run;
      run.index = i;
      run.label = formatted("seed={}", i + 1);
      run.options.method.name = "ddp";
      run.options.seed = i + 1;
      run.folder = folder_ / formatted("runs/{}", i + 1);
      runs_.push_back(run);
    }
  }
  std::string file_of(std::size_t seed, const std::string& name) const {
    return formatted("{}/runs/{}/{}", folder_.path(), seed, name);
  }
  bool has(std::size_t seed, const std::string& name) const {
    return fs::exists(file_of(seed, name));
  }

  // The body knows its `seed`, its run's folder `run` and the folder `all` of
  // the test. `finish` makes it a finished run; `await FILE` waits for a file.
  void program(const std::string& body) {
    program_ = folder_.add(
        "abtrain",
        "#!/bin/bash\n"
        "all='" +
            folder_.path() +
            "'\n"
            "[[ $1 == train && $2 == --config && $4 == --name && $5 == run && $6 == --output && "
            "$7 == runs && $8 == --resume && $9 == auto && $# == 9 ]] || exit 2\n"
            "run=$(dirname \"$3\"); seed=$(basename \"$run\")\n"
            "finish() { echo \"{\\\"accuracy\\\": 0.$seed}\" "
            ">\"$run/summary.json\"; }\n"
            "await() {\n"
            "  for ((i = 0; i < 3000; ++i)); do\n"
            "    [[ -e $1 ]] && return; sleep 0.02\n"
            "  done\n"
            "  exit 99\n"
            "}\n" +
            body + "\n");
    fs::permissions(program_, fs::perms::owner_all);
  }
  int train(std::size_t jobs) {
    return train_points(runs_, jobs, program_, said_.log());
  }
  void expect_said(const std::string& part) const {
    expect_has(said_.text(), part);
  }

  const TempFolder folder_;
  std::vector<PointRun> runs_;
  std::string program_;
  SaidLog said_;
};

TEST_F(LocalJobs, TrainEachPointWithItsOwnConfiguration) {
  program("echo \"out $seed\"; echo \"err $seed\" >&2; finish");
  add_points(3);
  EXPECT_EQ(train(1), 0);
  for (std::size_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ(config::read_config(file_of(seed, "config.yaml")).seed, seed);
    EXPECT_EQ(read_file(file_of(seed, "log.txt")), formatted("out {}\nerr {}\n", seed, seed));
    expect_said(formatted("[{}/3] seed={}: {}.00 % in ", seed, seed, 10 * seed));
  }
}

TEST_F(LocalJobs, TrainOnlyWhatIsNotFinished) {
  add_points(3);
  EXPECT_EQ(train(3), 0);
  fs::remove(file_of(2, "summary.json"));
  program("touch \"$all/ran$seed\"; finish");
  EXPECT_EQ(train(3), 0);
  EXPECT_FALSE(fs::exists(folder_ / "ran1"));
  EXPECT_TRUE(fs::exists(folder_ / "ran2"));
  EXPECT_FALSE(fs::exists(folder_ / "ran3"));
  expect_said("2 of 3 points are finished already");
  // A third time there is nothing to do.
  program("exit 1");
  EXPECT_EQ(train(3), 0);
}

// The first two wait for each other, so both must run at once.
TEST_F(LocalJobs, TrainAsManyAtATimeAsAskedFor) {
  program(
      "touch \"$all/began$seed\"\n"
      "((seed > 2)) || await \"$all/began$((3 - seed))\"\n"
      "finish");
  add_points(4);
  EXPECT_EQ(train(2), 0);
  for (std::size_t seed = 1; seed <= 4; ++seed) {
    EXPECT_TRUE(has(seed, "summary.json"));
  }
}

TEST_F(LocalJobs, NeverTrainMoreAtATimeThanAskedFor) {
  // Each says how many others run while it does.
  program(
      "touch \"$all/running$seed\"\n"
      "ls \"$all\" | grep -c running >>\"$all/counts\"\n"
      "rm \"$all/running$seed\"; finish");
  add_points(6);
  EXPECT_EQ(train(1), 0);
  EXPECT_EQ(read_file(folder_ / "counts"), "1\n1\n1\n1\n1\n1\n");
}

TEST_F(LocalJobs, OneThatFailsDoesNotKeepTheOthersFromRunning) {
  program(
      "((seed == 2)) && { printf 'a\\nb\\n\\nc\\nd\\n'; exit 70; }\n"
      "((seed == 3)) && exit 65\n"
      "finish");
  add_points(4);
  EXPECT_EQ(train(2), 70);  // of the lowest index
  EXPECT_TRUE(has(1, "summary.json"));
  EXPECT_TRUE(has(4, "summary.json"));
  expect_said("seed=2: failed after ");
  expect_said(
      formatted(" with exit code 70; {} ends with\n    b\n    c\n    d\n", file_of(2, "log.txt")));
  EXPECT_EQ(said_.text().find("\n    a\n"), std::string::npos);
}

TEST_F(LocalJobs, OneWithoutAResultHasFailed) {
  program("true");
  add_points(1);
  EXPECT_EQ(train(1), 66);
  expect_said("seed=1: failed: ");
  expect_said("summary.json");
}

TEST_F(LocalJobs, RefuseAnothersFolderBeforeAnythingIsStarted) {
  add_points(2);
  config::RunOptions other = runs_[1].options;
  other.seed = 99;
  folder_.add("runs/2/config.yaml", config::to_yaml(other));
  const std::string what = expect_error([&] { train(2); }, ErrorKind::Config);
  EXPECT_TRUE(what.starts_with(runs_[1].folder + "/config.yaml ")) << what;
  EXPECT_FALSE(fs::exists(runs_[0].folder));
}

TEST_F(LocalJobs, SkipWhatAnotherProcessTrains) {
  // The first one is trained by a sweep of the same point within it.
  add_points(2);
  PointRun twin = runs_[0];
  twin.index = 1;
  runs_[1] = twin;
  program("await \"$all/told\"; finish");
  // Both slots want the same log: the second is refused, and then the first
  // may end.
  const std::jthread teller([&](const std::stop_token& stop) {
    while (!stop.stop_requested() &&
           said_.text().find("another process is training it") == std::string::npos) {
      std::this_thread::yield();
    }
    folder_.add("told", "");
  });
  EXPECT_EQ(train(2), 75);
  expect_said("seed=1: another process is training it, so it is skipped here");
  EXPECT_TRUE(has(1, "summary.json"));
}

TEST_F(LocalJobs, PassASignalOnAndStop) {
  const StopSignals signals;
  program(
      "trap 'touch \"$run/saved\"; exit 75' TERM\n"
      "touch \"$all/began\"; await \"$all/never\"");
  add_points(3);
  const std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && !fs::exists(folder_ / "began")) {
      std::this_thread::yield();
    }
    ::raise(SIGTERM);
  });
  const std::string what = expect_error([&] { train(1); }, ErrorKind::Stopped);
  EXPECT_TRUE(what.starts_with("stopped by SIGTERM, 0 of 3 points finished")) << what;
  EXPECT_TRUE(has(1, "saved"));
  EXPECT_FALSE(fs::exists(runs_[1].folder));
  expect_said("seed=1: stopped after ");
  expect_said(", with its progress saved");
}

}  // namespace
}  // namespace abtrain::sweep
