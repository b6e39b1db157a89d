#include "run_folder/run_state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "process_end.h"
#include "run_folder/lock_file.h"
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
  const auto lock = [&](const LockHolder& holder) {
    std::filesystem::remove(lock_in(folder.path()));
    EXPECT_TRUE(create_lock(lock_in(folder.path()), holder));
  };
  expect(RunState::Stopped, "");
  LockHolder holder = this_process();
  holder.host = "here";
  holder.started = "2026-01-02T03:04:05Z";
  lock(holder);
  const std::string who = formatted("process {} on here, since 2026-01-02T03:04:05Z", holder.pid);
  expect(RunState::Running, who);
  // What failed was the attempt before.
  folder.add("failure.json", R"({"exit_code": 70, "message": "it is inf\nmore"})");
  expect(RunState::Running, who);
  const pid_t child = pid_of_the_dead();
  LockHolder dead = holder;
  dead.pid = child;
  lock(dead);
  expect(RunState::Failed, "exit code 70: it is inf");
  folder.add("failure.json", "{");
  expect(RunState::Failed, "failure.json is damaged");
  std::filesystem::remove(folder / "failure.json");
  expect(RunState::Killed, formatted("process {} on here, since 2026-01-02T03:04:05Z", child));
  // Of another machine nothing but the lock can be seen.
  dead.machine = "another";
  dead.host = "far";
  dead.started = "";
  lock(dead);
  expect(
      RunState::Running,
      formatted("process {} on far; from here only its lock can be seen", child));
  folder.add("summary.json", "{}");
  expect(RunState::Finished, "");
}

}  // namespace
}  // namespace abtrain::run_folder
