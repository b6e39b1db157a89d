// Who may train in a run folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "base/files.h"
#include "error_of.h"
#include "process_end.h"
#include "run_folder/run_lock.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;
using run_folder::RunLock;
namespace fs = std::filesystem;
using nlohmann::json;

constexpr run_folder::LockTimes kFast{0.03, 0.3, 0.1};

Log& quiet() {
  static Log log(LogLevel::Quiet);
  return log;
}

// Does what may find the folder in use.
void attempt(const std::function<void()>& body) {
  const auto [code, what] = error_of(body);
  EXPECT_TRUE(code == 0 || code == static_cast<int>(ErrorKind::Stopped)) << what;
}

// A lock as another process has left it: ours, with some keys changed.
json left_behind(const TempFolder& folder, const json& changes) {
  json lock;
  {
    const RunLock own(folder / "run", quiet());
    lock = json::parse(read_file(folder / "run/lock.json"));
  }
  lock["id"] = "abc0";
  lock.update(changes);
  folder.add("run/lock.json", lock.dump() + "\n");
  return lock;
}

TEST(RunLock, TheSecondIsToldWhoHoldsIt) {
  const TempFolder folder;
  {
    const RunLock first(folder / "run", quiet());
    expect_error(
        [&] { const RunLock second(folder / "run", quiet(), kFast); }, ErrorKind::Stopped,
        {folder / "run is in use", formatted("process {} on ", ::getpid()), "since 20",
         formatted("kill {}", ::getpid()), "--name"});
    EXPECT_NO_THROW(run_folder::check_run_lock(true));
  }
  EXPECT_FALSE(fs::exists(folder / "run"));           // it was made for the lock alone
  EXPECT_NO_THROW(run_folder::check_run_lock(true));  // none is held
}

TEST(RunLock, LeavesNothingBehind) {
  const TempFolder folder;
  folder.add("run/config.yaml", "");
  folder.add("run/lock-12.tmp", "of a process that was killed");
  { const RunLock lock(folder / "run", quiet()); }
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "run")) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(left, std::vector<std::string>{"config.yaml"});
}

TEST(RunLock, ADeadProcessOfThisMachineHoldsNothing) {
  const TempFolder folder;
  left_behind(folder, {{"pid", pid_of_the_dead()}});
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
  // The number has come again: another process has it now.
  left_behind(folder, {{"ticks", "1"}});
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
  // One that waits to be reaped is dead too.
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  left_behind(folder, {{"pid", child}, {"ticks", ""}});
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
  ::waitpid(child, nullptr, 0);
}

TEST(RunLock, AProcessOfThisMachineGetsTimeToEnd) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::_exit(0);
  }
  left_behind(folder, {{"pid", child}, {"ticks", ""}});
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
  ::waitpid(child, nullptr, 0);
  // It may release the lock too.
  auto first = std::make_unique<RunLock>(folder / "run", quiet());
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    first.reset();
  });
  EXPECT_NO_THROW(RunLock(folder / "run", quiet()));
}

TEST(RunLock, AnotherHostIsWatched) {
  const TempFolder folder;
  json lock = left_behind(folder, {{"machine", "m"}, {"host", "far"}});
  // Its clock may be wrong in any way.
  fs::last_write_time(
      folder / "run/lock.json", fs::file_time_type::clock::now() + std::chrono::hours(48));
  EXPECT_NO_THROW(RunLock(folder / "run", quiet(), kFast));

  left_behind(folder, {{"machine", "m"}, {"host", "far"}});
  fs::last_write_time(
      folder / "run/lock.json", fs::file_time_type::clock::now() - std::chrono::hours(48));
  std::jthread beats([&](const std::stop_token& stop) {
    for (int beat = 1; !stop.stop_requested(); ++beat) {
      lock["beat"] = beat;
      folder.add("run/lock.new", lock.dump() + "\n");
      fs::rename(folder / "run/lock.new", folder / "run/lock.json");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  expect_error(
      [&] { const RunLock second(folder / "run", quiet(), kFast); }, ErrorKind::Stopped,
      {" on far"});
}

// Nobody may name the holder of a file that a process was killed in. It ages
// with the heartbeats, in less time than that of a holder that is known.
TEST(RunLock, AHalfWrittenLockAgesSooner) {
  constexpr run_folder::LockTimes kNeverStale{0.03, 1e9};
  for (const char* text : {"", "{\"host\": \"x", "[[[[", "{\"pid\": -1}"}) {
    const TempFolder folder;
    folder.add("run/lock.json", text);
    EXPECT_NO_THROW(RunLock(folder / "run", quiet(), kNeverStale)) << text;
  }
}

// Whoever holds the folder may only be about to write its name.
TEST(RunLock, ALockThatIsBeingWrittenIsItsWriters) {
  const TempFolder folder;
  const json lock = left_behind(folder, {{"pid", ::getpid()}});
  folder.add("run/lock.json", "");
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    folder.add("run/lock.json", lock.dump() + "\n");
  });
  expect_error(
      [&] {
        const RunLock second(folder / "run", quiet(), {1, 1e9, 0});
      },
      ErrorKind::Stopped, {formatted("process {} on ", ::getpid())});
}

TEST(RunLock, OneOfManyTakesOver) {
  constexpr int kTakers = 6;
  const TempFolder folder;
  folder.add("run/config.yaml", "");
  for (int round = 0; round < 40; ++round) {
    left_behind(folder, {{"machine", "m"}});
    if (round % 2 == 1) {  // one that took over has died in the middle of it
      fs::copy(folder / "run/lock.json", folder / "run/lock-abc0.json");
      json claim = json::parse(read_file(folder / "run/lock.json"));
      claim["id"] = "abc1";
      folder.add("run/lock-abc0.json", claim.dump());
    }
    std::barrier begin(kTakers);
    std::barrier end(kTakers);
    std::atomic<int> holders = 0;
    std::vector<std::jthread> takers;
    for (int i = 0; i < kTakers; ++i) {
      takers.emplace_back([&] {
        std::optional<RunLock> lock;
        begin.arrive_and_wait();
        attempt([&] {
          lock.emplace(folder / "run", quiet(), run_folder::LockTimes{0.01, 0.03, 0});
          ++holders;
        });
        end.arrive_and_wait();
      });
    }
    takers.clear();
    ASSERT_EQ(holders, 1) << round;
    ASSERT_FALSE(fs::exists(folder / "run/lock.json")) << round;
  }
}

TEST(RunLock, WhatIsTakenAndGivenBackHasOneHolder) {
  constexpr int kThreads = 4;
  const TempFolder folder;
  folder.add("run/config.yaml", "");
  std::atomic<int> inside = 0;
  std::atomic<int> taken = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (taken < 200) {
        attempt([&] {
          const RunLock lock(folder / "run", quiet(), {3, 60, 0});
          EXPECT_EQ(++inside, 1);
          ++taken;
          std::this_thread::yield();
          --inside;
        });
      }
    });
  }
  threads.clear();
  EXPECT_GE(taken, 200);
}

TEST(RunLock, ALostLockIsNoticedAndTheOthersIsLeftAlone) {
  const TempFolder folder;
  for (const std::string how : {"file", "folder", "taken", "claimed"}) {
    const std::string place = folder / how;
    std::string other;
    {
      RunLock lock(place, quiet());
      json mine = json::parse(read_file(place + "/lock.json"));
      const std::string id = mine["id"];
      mine["id"] = "abc0";
      mine["host"] = "thief";
      EXPECT_NO_THROW(lock.check(true));
      if (how == "file") {
        fs::remove(place + "/lock.json");
      } else if (how == "folder") {
        fs::remove_all(place);
      } else {
        const std::string name = how == "taken" ? "lock.json" : "lock-" + id + ".json";
        folder.add(how + "/new", mine.dump());
        fs::rename(place + "/new", place + "/" + name);
        other = place + "/" + name;
      }
      expect_error(
          [&] { lock.check(true); }, ErrorKind::Io,
          {"lost its folder " + place, other.empty() ? "is gone" : "on thief"});
      EXPECT_TRUE(run_folder::lost_run_lock());
      expect_error([] { run_folder::check_run_lock(); }, ErrorKind::Io);
    }
    EXPECT_EQ(other.empty() || fs::exists(other), true) << how;
    EXPECT_EQ(fs::exists(place), how != "folder");
  }
}

// The thread that beats notices by itself; check() without `now` is cheap.
TEST(RunLock, BeatsAndLooksByItself) {
  const TempFolder folder;
  RunLock lock(folder / "run", quiet(), kFast);
  const auto beat = [&] {
    return json::parse(read_file(folder / "run/lock.json"))["beat"].get<int>();
  };
  for (int i = 0; i < 500 && beat() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(beat(), 3);
  fs::remove(folder / "run/lock.json");
  for (int i = 0; i < 500 && !run_folder::lost_run_lock(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  expect_error([&] { lock.check(); }, ErrorKind::Io);
}

}  // namespace
