#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"
#include "with_variables.h"

namespace abtrain {
namespace {

std::string read_all(int descriptor) {
  std::array<char, 4096> block;
  std::string out;
  ssize_t got = 0;
  while ((got = ::read(descriptor, block.data(), block.size())) > 0) {
    out.append(block.data(), static_cast<std::size_t>(got));
  }
  return out;
}

// A pipe; what was written into it.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_NONBLOCK) != 0) {
      throw std::runtime_error("no pipe");
    }
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int in() const {
    return ends_[1];
  }
  std::string text() const {
    return read_all(ends_[0]);
  }

 private:
  std::array<int, 2> ends_{};
};

// A pseudo-terminal of 20 columns.
class Terminal {
 public:
  // A bare chroot may have none.
  static bool available() {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    const bool opened = master >= 0 && ::ptsname(master) != nullptr &&
                        ::access(::ptsname(master), R_OK | W_OK) == 0;
    ::close(master);
    return opened;
  }
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) {
      throw std::runtime_error("no pseudo-terminal");
    }
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    const winsize size{24, 20, 0, 0};
    ::ioctl(slave_, TIOCSWINSZ, &size);
  }
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }
  int in() const {
    return slave_;
  }
  std::string text() const {
    return read_all(master_);
  }

 private:
  int master_;
  int slave_;
};

TEST(Log, PlainLinesWithoutATerminal) {
  const Pipe pipe;
  Log log(LogLevel::Info, pipe.in());
  log.live("never seen");
  log.info("rank {}", 3);
  log.warning("careful");
  EXPECT_EQ(pipe.text(), "rank 3\nwarning: careful\n");
  EXPECT_FALSE(log.is_live());
}

// Messages quote what files hold; lines of their own are kept.
TEST(Log, WhatATerminalWouldActOnIsEscaped) {
  const Pipe pipe;
  Log log(LogLevel::Info, pipe.in());
  log.warning("run 'a\x1b[2Jb':\n\ttwo lines");
  EXPECT_EQ(pipe.text(), "warning: run 'a\\x1b[2Jb':\n\ttwo lines\n");
}

TEST(Log, LevelsLeaveOutWhatIsBelow) {
  const Pipe pipe;
  Log(LogLevel::Quiet, pipe.in()).warning("no");
  Log(LogLevel::Warning, pipe.in()).info("no");
  Log(LogLevel::Warning, pipe.in()).warning("yes");
  EXPECT_EQ(pipe.text(), "warning: yes\n");
}

TEST(Log, LiveLineStaysBelowMessagesOnATerminal) {
  if (!Terminal::available()) {
    GTEST_SKIP() << "no pseudo-terminals on this machine";
  }
  const testing::WithVariables term{{"TERM", "xterm"}};
  const testing::WithVariables no_color{{"NO_COLOR", "1"}};
  const Terminal terminal;
  Log log(LogLevel::Info, terminal.in());
  EXPECT_TRUE(log.is_live());
  log.live("step 1");
  log.warning("careful");
  log.live("");
  EXPECT_EQ(terminal.text(), "\r\x1b[Kstep 1\r\x1b[Kwarning: careful\r\nstep 1\r\x1b[K");
  // A longer line than the terminal would wrap and stay.
  log.live(std::string(50, 'x'));
  EXPECT_EQ(terminal.text(), "\r\x1b[K" + std::string(19, 'x'));
}

TEST(Log, ColorsOnlyOnATerminalThatWantsThem) {
  if (!Terminal::available()) {
    GTEST_SKIP() << "no pseudo-terminals on this machine";
  }
  const testing::WithVariables term{{"TERM", "xterm"}};
  const testing::WithVariables no_color{{"NO_COLOR", ""}};
  const Terminal terminal;
  const Pipe pipe;
  EXPECT_TRUE(wants_color(terminal.in()));
  EXPECT_FALSE(wants_color(pipe.in()));
  const testing::WithVariables dumb{{"TERM", "dumb"}};
  EXPECT_FALSE(wants_color(terminal.in()));
}

TEST(Log, LinesOfThreadsDoNotMix) {
  const Pipe pipe;
  Log log(LogLevel::Info, pipe.in());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 50; ++i) {
        log.info("0123456789");
      }
    });
  }
  threads.clear();
  const auto lines = split_text(pipe.text(), '\n');
  ASSERT_EQ(lines.size(), 201u);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(lines[i], "0123456789");
  }
}

TEST(Terminal, WidthOfATerminalElseTheGivenOne) {
  if (!Terminal::available()) {
    GTEST_SKIP() << "no pseudo-terminals on this machine";
  }
  const Terminal terminal;
  const Pipe pipe;
  EXPECT_TRUE(is_tty(terminal.in()));
  EXPECT_FALSE(is_tty(pipe.in()));
  EXPECT_EQ(terminal_width(terminal.in()), 20);
  EXPECT_EQ(terminal_width(pipe.in(), 77), 77);
}

TEST(Env, EmptyIsNotSet) {
  const testing::WithVariables set{{"ABTRAIN_TEST", ""}};
  EXPECT_FALSE(env("ABTRAIN_TEST"));
  EXPECT_FALSE(env_integer("ABTRAIN_TEST"));
  const testing::WithVariables number{{"ABTRAIN_TEST", "12"}};
  EXPECT_EQ(env_integer("ABTRAIN_TEST"), 12);
  const testing::WithVariables text{{"ABTRAIN_TEST", "twelve"}};
  EXPECT_EQ(env("ABTRAIN_TEST"), "twelve");
  EXPECT_THROW(env_integer("ABTRAIN_TEST"), Error);
}

TEST(Env, KnowsItsOwnProgram) {
  EXPECT_EQ(::access(program_path().c_str(), X_OK), 0) << program_path();
}

TEST(Stopwatch, StartsAgain) {
  Stopwatch watch;
  const double first = watch.seconds();
  EXPECT_GE(first, 0);
  EXPECT_GE(watch.restart(), first);
}

}  // namespace
}  // namespace abtrain
