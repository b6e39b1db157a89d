// Signals as a request to stop: the first is noted, a second strong one ends
// the process. What ends a process is tried in a child.
#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "process_end.h"

namespace abtrain {
namespace {

// Of a child that gets these signals one after the other; where it lives on,
// the exit code is the number of the signal that it noted.
int fate(const std::vector<int>& signals) {
  const auto body = [&] {
    const StopSignals stop;
    for (const int number : signals) {
      ::raise(number);
    }
    ::_exit(StopSignals::requested());
  };
  return end_of_fork(body).first;
}

TEST(StopSignals, TheFirstIsNotedAndTheProcessLives) {
  EXPECT_EQ(fate({}), 0);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    EXPECT_EQ(fate({number}), number) << signal_name(number);
  }
}

TEST(StopSignals, ASecondOneFromTheKeyboardEndsTheProcess) {
  EXPECT_EQ(fate({SIGINT, SIGINT}), 128 + SIGINT);
  EXPECT_EQ(fate({SIGTERM, SIGINT}), 128 + SIGINT);
  EXPECT_EQ(fate({SIGUSR1, SIGINT}), 128 + SIGINT);
}

// Slurm's preemption sends SIGTERM twice within a second.
TEST(StopSignals, SchedulersMayRepeatThemselves) {
  EXPECT_EQ(fate({SIGUSR1, SIGTERM}), SIGUSR1);
  EXPECT_EQ(fate({SIGUSR1, SIGUSR1, SIGUSR1}), SIGUSR1);
  EXPECT_EQ(fate({SIGTERM, SIGUSR1}), SIGTERM);
  EXPECT_EQ(fate({SIGTERM, SIGTERM, SIGTERM}), SIGTERM);
}

TEST(StopSignals, LeaveNothingBehind) {
  for (int n = 0; n < 2; ++n) {
    const StopSignals stop;
    EXPECT_EQ(StopSignals::requested(), 0);
    ::raise(SIGTERM);
    EXPECT_EQ(StopSignals::requested(), SIGTERM);
  }
  EXPECT_EQ(StopSignals::requested(), 0);
}

TEST(StopSignals, WhatWasThereBeforeComesBack) {
  const auto handler_of = [](int number) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    return action.sa_handler;
  };
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  const auto term = handler_of(SIGTERM);
  {
    const StopSignals stop;
    EXPECT_NE(handler_of(SIGUSR1), SIG_IGN);
    EXPECT_NE(handler_of(SIGTERM), term);
  }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_IGN);
  EXPECT_EQ(handler_of(SIGTERM), term);
  ::signal(SIGUSR1, before);
}

// Of a child that catches these signals before it has a StopSignals.
int early_fate(const std::vector<int>& signals, bool stops) {
  const auto body = [&] {
    ::signal(SIGINT, SIG_DFL);  // a script's background jobs ignore it
    catch_signals();
    for (const int number : signals) {
      ::raise(number);
    }
    if (!stops) {
      release_signals();
      ::_exit(99);
    }
    const StopSignals stop;
    ::_exit(StopSignals::requested());
  };
  return end_of_fork(body).first;
}

TEST(EarlySignals, AreThoseOfTheStopSignalsToCome) {
  EXPECT_EQ(early_fate({}, true), 0);
  EXPECT_EQ(early_fate({SIGTERM}, true), SIGTERM);
  EXPECT_EQ(early_fate({SIGINT}, true), SIGINT);
  EXPECT_EQ(early_fate({SIGTERM, SIGINT}, true), 128 + SIGINT);
}

TEST(EarlySignals, HaveTheirUsualEffectWhereNoneAreToCome) {
  EXPECT_EQ(early_fate({}, false), 99);
  EXPECT_EQ(early_fate({SIGTERM}, false), -SIGTERM);
  EXPECT_EQ(early_fate({SIGINT}, false), -SIGINT);
}

TEST(EarlySignals, AFileTooLargeIsAnErrorOfItsWriter) {
  EXPECT_EQ(early_fate({SIGXFSZ}, false), 99);
}

TEST(EarlySignals, NobodyNeedsToReadWhatIsWritten) {
  EXPECT_EQ(early_fate({SIGPIPE}, true), 0);
  const auto body = [] {
    catch_signals();
    release_signals();
    ::raise(SIGPIPE);
  };
  EXPECT_EQ(end_of_fork(body).first, -SIGPIPE);
}

TEST(StopSignals, HaveNames) {
  EXPECT_STREQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_STREQ(signal_name(SIGINT), "SIGINT");
  EXPECT_STREQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_STREQ(signal_name(SIGHUP), "a signal");
}

}  // namespace
}  // namespace abtrain
