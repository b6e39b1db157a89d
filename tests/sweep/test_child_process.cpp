// Child processes: how they end, where they write, on which cores.
#include "sweep/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::sweep {
namespace {

std::unique_ptr<ChildProcess> shell(
    const std::string& text, const std::string& log = "/dev/null",
    const std::vector<int>& cores = {}) {
  return ChildProcess::start({"/bin/sh", "-c", text}, log, cores);
}

// Waits for the end, and returns the exit code.
int code_of(const std::unique_ptr<ChildProcess>& child) {
  while (!child->ended()) {
  }
  return *child->ended();
}

TEST(ChildProcess, EndsWithACode) {
  EXPECT_EQ(code_of(shell("exit 0")), 0);
  EXPECT_EQ(code_of(shell("exit 70")), 70);
  EXPECT_EQ(code_of(shell("kill -KILL $$")), 128 + SIGKILL);
  const auto child = shell("exit 3");
  EXPECT_EQ(code_of(child), 3);
  EXPECT_EQ(child->ended(), 3);
  EXPECT_NE(code_of(ChildProcess::start({"/no/program"}, "/dev/null", {})), 0);
}

TEST(ChildProcess, GetsItsWordsAsTheyAre) {
  const TempFolder folder;
  code_of(ChildProcess::start(
      {"/bin/sh", "-c", "echo \"$1|$2\"", "x", "a b", "$HOME"}, folder / "log", {}));
  EXPECT_EQ(read_file(folder / "log"), "a b|$HOME\n");
}

TEST(ChildProcess, AppendsAllItSaysToItsLog) {
  const TempFolder folder;
  folder.add("log", "before\n");
  EXPECT_EQ(code_of(shell("echo out; echo err >&2; cat", folder / "log")), 0);
  EXPECT_EQ(read_file(folder / "log"), "before\nout\nerr\n");
  expect_error([&] { shell("true", folder / "no/folder/log"); }, ErrorKind::Io);
}

TEST(ChildProcess, HasItsLogForItself) {
  const TempFolder folder;
  const auto first = ChildProcess::start({"/bin/sleep", "1000"}, folder / "log", {});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(shell("echo second", folder / "log"), nullptr);
  EXPECT_NE(shell("true", folder / "other"), nullptr);
  first->send(SIGKILL);
  EXPECT_EQ(code_of(first), 128 + SIGKILL);
  EXPECT_EQ(code_of(shell("echo third", folder / "log")), 0);
  EXPECT_EQ(read_file(folder / "log"), "third\n");
}

TEST(ChildProcess, IsKilledWithItsObject) {
  const TempFolder folder;
  {
    const auto child = ChildProcess::start({"/bin/sleep", "1000"}, folder / "log", {});
    EXPECT_FALSE(child->ended());
  }
  // The lock of its log is free again.
  EXPECT_EQ(code_of(shell("echo next", folder / "log")), 0);
}

TEST(CoresOfSlots, AreSharesOfOnesOwn) {
  EXPECT_TRUE(cores_of_slot(0, 1).empty());
  const TempFolder folder;
  const std::vector<int> first = cores_of_slot(0, 2);
  const std::vector<int> second = cores_of_slot(1, 2);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(first.size(), second.size());
  const auto shared = std::ranges::find_first_of(first, second) != first.end();
  EXPECT_EQ(shared, first == second);  // one core: both slots have it
  EXPECT_EQ(
      code_of(shell("unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc", folder / "log", first)), 0);
  EXPECT_EQ(read_file(folder / "log"), formatted("{}\n", first.size()));
}

}  // namespace
}  // namespace abtrain::sweep
