#include "run_folder/run_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "error_of.h"
#include "run_folder/run_lock.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

TEST(RunState, IsThatOfTheFolder) {
  const TempFolder folder;
  const auto expect = [&](RunState state, const std::string& about) {
    const RunStatus found = status_of(folder.path());
    EXPECT_STREQ(name_of(found.state), name_of(state));
    EXPECT_EQ(found.about, about);
  };
  expect(RunState::Stopped, "");
  {
    Log quiet(LogLevel::Quiet);
    const RunLock lock(folder.path(), quiet);
    // What failed was the attempt before.
    folder.add("failure.json", R"({"exit_code": 70, "message": "it is inf\nmore"})");
    const RunStatus found = status_of(folder.path());
    EXPECT_STREQ(name_of(found.state), "running");
    expect_has(found.about, formatted("process {} on ", ::getpid()));
  }
  folder.add("lock.json", R"({"host": "\u001bhere", "pid": 7, "started": "2026-01-02T03:04:05Z"})");
  expect(RunState::Failed, "exit code 70: it is inf");
  EXPECT_FALSE(status_of(folder.path()).step);
  folder.add("failure.json", R"({"exit_code": 70, "message": "it is inf", "step": 12})");
  expect(RunState::Failed, "exit code 70: it is inf");
  EXPECT_EQ(status_of(folder.path()).step, 12);
  for (const char* damaged :
       {"{", R"({"exit_code": 70, "message": "it is inf", "step": -1})",
        R"({"exit_code": 70, "message": "it is inf", "step": "12"})"}) {
    folder.add("failure.json", damaged);
    expect(RunState::Failed, "failure.json is damaged");
  }
  std::filesystem::remove(folder / "failure.json");
  expect(RunState::Killed, "process 7 on \\x1bhere, since 2026-01-02T03:04:05Z");
  folder.add("lock.json", "{");
  expect(RunState::Killed, "another process");
  folder.add("summary.json", "{}");
  expect(RunState::Finished, "");
}

}  // namespace
}  // namespace abtrain::run_folder
