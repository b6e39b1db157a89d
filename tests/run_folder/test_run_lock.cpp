// Who may train in a run folder.
#include "run_folder/run_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "error_of.h"
#include "run_folder/run_state.h"
#include "temp_folder.h"

namespace {

// What locking fails with, in place of the system's answer; 0: it does not.
std::atomic<int> lock_error = 0;

}  // namespace

// Takes the place of the C library's in this program.
extern "C" int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (lock_error != 0 && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
    errno = lock_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fcntl, file, command, argument));
}

namespace {

using namespace abtrain;
using run_folder::RunLock;
namespace fs = std::filesystem;

Log& quiet() {
  static Log log(LogLevel::Quiet);
  return log;
}

TEST(RunLock, TheSecondIsToldWhoHoldsIt) {
  const TempFolder folder;
  {
    const RunLock first(folder / "run", quiet());
    expect_error(
        [&] { const RunLock second(folder / "run", quiet(), 0); }, ErrorKind::Stopped,
        {folder / "run is in use by " + formatted("process {} on ", ::getpid()), ", since 20",
         "--name"});
    EXPECT_NO_THROW(run_folder::check_run_lock());
  }
  EXPECT_FALSE(fs::exists(folder / "run"));       // it was made for the lock alone
  EXPECT_NO_THROW(run_folder::check_run_lock());  // none is held
}

TEST(RunLock, AHolderGetsTimeToEnd) {
  const TempFolder folder;
  auto first = std::make_unique<RunLock>(folder / "run", quiet());
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    first.reset();
  });
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
}

TEST(RunLock, AFileAloneHoldsNothing) {
  const TempFolder folder;
  folder.add("run/config.yaml", "");
  for (const std::string& text :
       {std::string(), std::string("{\"host\": \"x"), std::string(2000, '['),
        formatted("{{\"host\": \"x\", \"pid\": {}, \"beat\": 3, \"id\": \"ab\"}}", ::getpid())}) {
    folder.add("run/lock.json", text);
    EXPECT_NO_THROW(RunLock(folder / "run", quiet(), 0)) << text;
    EXPECT_EQ(list_folder(folder / "run"), std::vector<fs::path>{folder / "run/config.yaml"});
  }
  fs::create_directory(folder / "run/lock.json");
  expect_error(
      [&] { RunLock(folder / "run", quiet(), 0); }, ErrorKind::Io, {folder / "run/lock.json"});
}

// A program that the holder has started must not keep the lock.
TEST(RunLock, AKilledProcessHoldsNothingThoughItsChildLives) {
  const TempFolder folder;
  std::array<int, 2> pids{};
  std::array<int, 2> executed{};
  ASSERT_EQ(::pipe(pids.data()), 0);
  ASSERT_EQ(::pipe2(executed.data(), O_CLOEXEC), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const RunLock lock(folder / "run", quiet());
    const pid_t child = ::fork();
    if (child == 0) {
      ::execlp("sleep", "sleep", "1000", nullptr);
    }
    ::close(executed[1]);
    [[maybe_unused]] const auto sent = ::write(pids[1], &child, sizeof(child));
    ::pause();
  }
  pid_t child = 0;
  char none = 0;
  ASSERT_EQ(::read(pids[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ::close(executed[1]);
  EXPECT_EQ(::read(executed[0], &none, 1), 0);  // "sleep" runs
  EXPECT_TRUE(run_folder::look_at_lock(folder / "run")->is_held.value());
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_FALSE(run_folder::look_at_lock(folder / "run")->is_held.value());
  EXPECT_NO_THROW(RunLock(folder / "run", quiet(), 0));
  EXPECT_EQ(::kill(child, SIGKILL), 0);
}

TEST(RunLock, WhatIsTakenAndGivenBackHasOneHolder) {
  struct Shared {
    std::atomic<int> inside = 0;
    std::atomic<int> taken = 0;
    std::atomic<int> problems = 0;
  };
  const TempFolder folder;
  folder.add("run/config.yaml", "");
  void* place =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& shared = *new (place) Shared;
  std::vector<pid_t> processes(4);
  for (pid_t& process : processes) {
    process = ::fork();
    if (process != 0) {
      continue;
    }
    while (shared.taken < 300) {
      const auto [code, what] = error_of([&] {
        const RunLock lock(folder / "run", quiet(), 0);
        shared.problems += ++shared.inside == 1 ? 0 : 1;
        ++shared.taken;
        std::this_thread::yield();
        lock.check();
        --shared.inside;
      });
      shared.problems += code == 0 || code == static_cast<int>(ErrorKind::Stopped) ? 0 : 1;
    }
    ::_exit(0);
  }
  for (const pid_t process : processes) {
    ::waitpid(process, nullptr, 0);
  }
  EXPECT_GE(shared.taken, 300);
  EXPECT_EQ(shared.problems, 0);
  ::munmap(place, sizeof(Shared));
}

TEST(RunLock, ALostLockIsNoticedAndTheOthersIsLeftAlone) {
  const TempFolder folder;
  for (const std::string how : {"file", "folder", "taken"}) {
    const std::string place = folder / how;
    {
      const RunLock lock(place, quiet());
      EXPECT_NO_THROW(lock.check());
      EXPECT_FALSE(run_folder::lost_run_lock());
      if (how == "file") {
        run_folder::break_run_lock(place);
      } else if (how == "folder") {
        fs::remove_all(place);
      } else {
        folder.add(how + "/lock.json", R"({"pid": 7, "host": "thief"})");
      }
      expect_error(
          [] { run_folder::check_run_lock(); }, ErrorKind::Io,
          {"lost its folder " + place, how == "taken" ? "process 7 on thief" : "is gone"});
      EXPECT_TRUE(run_folder::lost_run_lock());
    }
    EXPECT_EQ(fs::exists(place + "/lock.json"), how == "taken");
  }
}

TEST(RunLock, WithoutLocksTheSecondIsWarnedAndTheFirstEnds) {
  const TempFolder folder;
  const std::string said = folder.add("said", "");
  Log log(LogLevel::Warning, Descriptor(::open(said.c_str(), O_WRONLY)).release());
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL}) {
    lock_error = error;
    const RunLock first(folder / "run", log, 0);
    EXPECT_EQ(run_folder::status_of(folder / "run").state, run_folder::RunState::Running);
    EXPECT_NO_THROW(RunLock(folder / "run", quiet(), 0));
    expect_error([&] { first.check(); }, ErrorKind::Io, {"is gone"});
    lock_error = 0;
  }
  const std::string text = read_file(said);
  EXPECT_EQ(split_text(text, '\n').size(), 5U) << text;
  expect_has(text, "run: its file system has no locks (No locks available)");
}

}  // namespace
