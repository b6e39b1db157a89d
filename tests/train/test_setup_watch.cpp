// What ends a process that is asked to stop before its first step.
#include "train/workers/setup_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "process_end.h"

namespace abtrain::train {
namespace {

TEST(SetupWatch, SaysWhatWasBeingDone) {
  const StopSignals signals;
  Log log(LogLevel::Quiet);
  std::promise<std::string> said;
  SetupWatch watch(log, "reading the configuration");
  watch.set_leave([&](const std::string& text) { said.set_value(text); });
  watch.doing("reading cifar10");
  ::raise(SIGTERM);
  EXPECT_EQ(
      said.get_future().get(),
      "stopped by SIGTERM before the first step (reading cifar10): nothing is "
      "lost; the same command starts again");
}

TEST(SetupWatch, LeavesSignalsAloneOnceItHasEnded) {
  const StopSignals signals;
  Log log(LogLevel::Quiet);
  SetupWatch watch(log, "reading the configuration");
  watch.set_leave([&](const std::string& text) { FAIL() << text; });
  watch.end();
  ::raise(SIGTERM);
  EXPECT_EQ(StopSignals::requested(), SIGTERM);
}

TEST(SetupWatch, EndsTheProcessByItself) {
  const ProcessEnd end = end_of_fork([] {
    const StopSignals signals;
    Log log(LogLevel::Quiet);
    const SetupWatch watch(log, "reading cifar10");
    ::raise(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::minutes(1));  // ended meanwhile
  });
  EXPECT_EQ(
      end, ProcessEnd(
               75,
               "abtrain: stopped by SIGUSR1 before the first step (reading cifar10): "
               "nothing is lost; the same command starts again\n"));
}

// LibTorch's calls fail when a signal interrupts them.
TEST(SetupWatch, ASignalCountsForMoreThanTheErrorItCauses) {
  const ProcessEnd end = end_of_fork([] {
    const StopSignals signals;
    Log log(LogLevel::Quiet);
    try {
      const SetupWatch watch(log, "waiting for the others");
      ::raise(SIGTERM);
      throw Error(ErrorKind::PeerLost, "interrupted");
    } catch (const Error&) {
      ::_exit(69);
    }
  });
  EXPECT_EQ(
      end, ProcessEnd(
               75,
               "abtrain: stopped by SIGTERM before the first step (waiting for the others): "
               "nothing is lost; the same command starts again\n"));
}

TEST(SetupWatch, EndsInSilence) {
  const ProcessEnd end = end_of_fork([] {
    {
      Log log(LogLevel::Info);
      const SetupWatch watch(log, "waiting for the others");
    }
    ::_exit(3);
  });
  EXPECT_EQ(end, ProcessEnd(3, ""));
}

// Live lines of processes that share a terminal would draw over each other.
TEST(SetupWatch, OneThatSpeaksOnceHasNoLiveLine) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  const bool unlocked = master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0;
  const int slave = unlocked ? ::open(::ptsname(master), O_RDWR | O_NOCTTY) : -1;
  if (slave < 0) {
    GTEST_SKIP() << "no pseudo-terminals on this machine";
  }
  const auto draws = [&](SetupWatch::Shows shows) {
    {
      Log log(LogLevel::Info, slave);
      const SetupWatch watch(log, "waiting for the others", shows);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    std::array<char, 4096> text{};
    bool any = false;
    while (::read(master, text.data(), text.size()) > 0) {  // a line at a time
      any = true;
    }
    return any;
  };
  EXPECT_TRUE(draws(SetupWatch::Shows::Progress));
  EXPECT_FALSE(draws(SetupWatch::Shows::Once));
  ::close(slave);
  ::close(master);
}

}  // namespace
}  // namespace abtrain::train
