// metrics.jsonl, its clock, and the lines of progress.
#include "run_folder/run_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "error_of.h"
#include "said_log.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

using nlohmann::ordered_json;

class RunLogTest : public ::testing::Test {
 protected:
  RunLogTest() {
    options_.train.tensorboard = false;
  }
  std::string metrics() const {
    return read_file(folder_ / "metrics.jsonl");
  }
  std::vector<std::string> said() const {
    std::vector<std::string> lines = split_text(said_.text(), '\n');
    std::erase(lines, "");
    return lines;
  }
  bool has_events_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("events.out.tfevents")) {
        return true;
      }
    }
    return false;
  }

  const TempFolder folder_;
  config::RunOptions options_;
  SaidLog said_;
  Log& log_ = said_.log();
};

TEST_F(RunLogTest, AnEventIsALineWithStepSecondsAndFields) {
  RunLog run(options_, folder_.path(), log_);
  const Stopwatch watch(100);
  run.set_seconds(100);
  run.event("sync", 7, {{"mode", "only-b"}, {"duration", 0.5}});
  run.event("evaluate", 8, ordered_json::object());
  EXPECT_EQ(run.flush(), static_cast<std::int64_t>(metrics().size()));
  const std::vector<std::string> lines = split_text(metrics(), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2], "");  // each line is ended
  ordered_json first = ordered_json::parse(lines[0]);
  const double seconds = first.at("seconds");
  EXPECT_GE(seconds, 100);
  EXPECT_LE(seconds, watch.seconds());
  first["seconds"] = 0;
  EXPECT_EQ(
      first.dump(), R"({"event":"sync","step":7,"seconds":0,"mode":"only-b","duration":0.5})");
  const ordered_json second = ordered_json::parse(lines[1]);
  EXPECT_EQ(second.size(), 3U);
  EXPECT_GE(second.at("seconds"), seconds);
}

TEST_F(RunLogTest, AResumedRunKeepsWhatItsCheckpointKnew) {
  const std::string kept = "{\"event\":\"a\"}\n";
  folder_.add("metrics.jsonl", kept + "{\"event\":\"b\"}\n{\"eve");
  RunLog run(options_, folder_.path(), log_, static_cast<std::int64_t>(kept.size()));
  EXPECT_EQ(metrics(), kept);
  run.event("c", 1, ordered_json::object());
  EXPECT_TRUE(metrics().starts_with(kept + R"({"event":"c","step":1,)"));
}

// The time that a checkpoint knows is earlier than that of the lines around it.
TEST_F(RunLogTest, TimeNeverGoesBack) {
  const std::string kept = "{\"event\":\"a\",\"step\":1,\"seconds\":70.5}\n";
  folder_.add("metrics.jsonl", kept + "{\"event\":\"b\",\"step\":1,\"seconds\":99}\n");
  RunLog run(options_, folder_.path(), log_, static_cast<std::int64_t>(kept.size()));
  const auto logged = [&](double seconds) -> double {
    run.set_seconds(seconds);
    run.event("resume", 1, ordered_json::object());
    run.flush();
    const std::vector<std::string> lines = split_text(metrics(), '\n');
    return ordered_json::parse(lines.at(lines.size() - 2)).at("seconds");
  };
  EXPECT_GE(logged(70), 70.5);
  EXPECT_LT(logged(80), 99);
  EXPECT_GE(logged(200), 200);
  EXPECT_GE(logged(100), 200);  // after the loss of a worker
}

TEST_F(RunLogTest, AFreshRunKeepsNothing) {
  folder_.add("metrics.jsonl", "{\"event\":\"a\"}\n");
  RunLog run(options_, folder_.path(), log_);
  EXPECT_EQ(run.flush(), 0);
  EXPECT_EQ(metrics(), "");
}

TEST_F(RunLogTest, WhatHasNoRoomIsWrittenLater) {
  std::string file;
  bool is_full = true;
  Backlog backlog(
      [&](std::string_view bytes) {
        ABT_CHECK(!is_full, Io, "cannot write 'file': full");
        file += bytes;
      },
      log_);
  backlog.finish();  // nothing is left
  backlog.add("a");
  backlog.add("b");
  EXPECT_EQ(file, "");
  EXPECT_EQ(said().size(), 1U);
  EXPECT_TRUE(said()[0].starts_with("warning: cannot write 'file': full"));
  EXPECT_THROW(backlog.finish(), Error);
  is_full = false;
  backlog.add("c");
  EXPECT_EQ(file, "abc");
  EXPECT_EQ(said().size(), 2U);
  backlog.add("d");
  backlog.finish();
  EXPECT_EQ(file, "abcd");
  EXPECT_EQ(said().size(), 2U);
}

TEST_F(RunLogTest, AFullDiskEndsNothingBeforeTheEnd) {
  std::filesystem::create_symlink("/dev/full", folder_ / "metrics.jsonl");
  RunLog run(options_, folder_.path(), log_);
  run.event("sync", 7, ordered_json::object());
  run.event("sync", 8, ordered_json::object());
  run.flush();
  ASSERT_EQ(said().size(), 1U);
  EXPECT_NE(said()[0].find("No space left"), std::string::npos) << said()[0];
  EXPECT_THROW(run.finish(), Error);
}

TEST_F(RunLogTest, FilesThatVanishAreWrittenAgainAtTheNextEvaluationOrSave) {
  options_.train.tensorboard = true;
  RunLog run(options_, folder_.path(), log_);
  const auto vanish = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove(entry);
    }
  };
  run.event("sync", 1, {{"duration", 0.5}});
  for (const int step : {2, 3}) {
    vanish();
    if (step == 2) {
      run.event("evaluate", step, {{"loss", 0.5}});
    } else {
      const std::int64_t bytes = run.flush();
      EXPECT_EQ(bytes, std::ssize(metrics()));
    }
    EXPECT_TRUE(has_events_file());
    ASSERT_EQ(said().size(), step == 2 ? 2U : 4U);
    expect_has(said()[said().size() - 2], "metrics.jsonl' was removed");
    expect_has(said().back(), "was removed");
    expect_has(said().back(), "events.out.tfevents");
  }
  const std::vector<std::string> lines = split_text(metrics(), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(ordered_json::parse(lines[0])["event"], "sync");
  EXPECT_EQ(ordered_json::parse(lines[1])["event"], "evaluate");
}

TEST_F(RunLogTest, ALineThatSomebodyHasCutIsRemoved) {
  RunLog run(options_, folder_.path(), log_);
  run.event("sync", 1, ordered_json::object());
  const std::string first = metrics();
  run.event("sync", 2, ordered_json::object());
  std::filesystem::resize_file(folder_ / "metrics.jsonl", first.size() + 3);
  EXPECT_EQ(run.flush(), static_cast<std::int64_t>(first.size()));
  EXPECT_EQ(metrics(), first);
  EXPECT_EQ(said().size(), 1U);
}

TEST_F(RunLogTest, AFolderThatIsGoneIsSaidOnce) {
  std::filesystem::create_directory(folder_ / "run");
  RunLog run(options_, folder_ / "run", log_);
  run.event("sync", 1, ordered_json::object());
  std::filesystem::remove_all(folder_ / "run");
  run.flush();
  run.flush();
  run.finish();
  ASSERT_EQ(said().size(), 1U);
  expect_has(said()[0], "metrics.jsonl");
}

TEST_F(RunLogTest, TensorBoardsFilesComeAndGoWithTheOption) {
  options_.train.tensorboard = true;
  RunLog(options_, folder_.path(), log_);
  EXPECT_TRUE(has_events_file());
  options_.train.tensorboard = false;
  RunLog(options_, folder_.path(), log_);
  EXPECT_FALSE(has_events_file());
}

TEST_F(RunLogTest, ProgressIsALineEveryHalfMinuteWhereNobodyWatches) {
  RunLog run(options_, folder_.path(), log_);
  run.progress(1, 90, "full", 2, 10, "images");
  EXPECT_TRUE(said().empty());
  // 1,000 s and a bit for a third of the steps: twice as much is left.
  run.set_seconds(1000);
  run.progress(30, 90, "full", 1.23456, 12345.6, "images");
  run.progress(31, 90, "full", 1.2, 12345.6, "images");
  ASSERT_EQ(said().size(), 1U);
  const std::string line = said().front();
  EXPECT_TRUE(line.starts_with("step 30/90  full  loss 1.2346  12,345 images/s  33 min ")) << line;
  EXPECT_TRUE(line.ends_with(" left")) << line;
  run.set_seconds(1010);
  run.progress(32, 90, "full", 1.2, 12345.6, "images");
  EXPECT_EQ(said().size(), 1U);
  run.set_seconds(1100);
  run.progress(33, 90, "ab", 1.2, 12345.6, "images");
  EXPECT_EQ(said().size(), 2U);
  // Not known before the first step is done.
  run.set_seconds(2000);
  run.progress(0, 90, "full", 1.2, 1, "images");
  EXPECT_TRUE(said().back().ends_with("  0.0 s left")) << said().back();
}

}  // namespace
}  // namespace abtrain::run_folder
