#include "compress/rounds.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace abtrain::compress {
namespace {

// Writes down when it is waited for, or let go.
comm::Pending noted(std::string& log, const std::string& text) {
  return comm::Pending([&log, text] { log += text + " "; }, [](const std::exception_ptr&) {});
}

struct Local {
  explicit Local(std::string& to) : log(to) {}
  ~Local() {
    log += "freed ";
  }
  std::string& log;
};

Rounds two_rounds(std::string& log) {
  const Local local(log);
  log += "start ";
  co_yield noted(log, "first");
  log += "middle ";
  co_yield noted(log, "second");
  log += "end ";
}

Rounds failing(std::string& log) {
  co_yield noted(log, "first");
  throw std::runtime_error("broken");
}

// One inside another, as CompressedReducer holds a scheme's.
Rounds nested(std::string& log) {
  Rounds inner = two_rounds(log);
  while (inner.resume()) {
    co_yield inner.take_pending();
  }
  log += "outer ";
}

TEST(Rounds, StopAtEachCollective) {
  std::string log;
  {
    Rounds rounds = two_rounds(log);
    EXPECT_EQ(log, "");
    EXPECT_TRUE(rounds.resume());
    EXPECT_EQ(log, "start ");
    rounds.wait();
    EXPECT_TRUE(rounds.resume());
    rounds.wait();
    EXPECT_FALSE(rounds.resume());
    EXPECT_EQ(log, "start first middle second end freed ");
  }
  EXPECT_EQ(log, "start first middle second end freed ");
}

TEST(Rounds, NestedOnesHandTheirCollectivesOn) {
  std::string log;
  Rounds rounds = nested(log);
  while (rounds.resume()) {
    rounds.wait();
  }
  EXPECT_EQ(log, "start first middle second end freed outer ");
}

TEST(Rounds, DroppedOnesLetGoOfTheCollectiveBeforeTheirTensors) {
  std::string log;
  {
    Rounds rounds = two_rounds(log);
    rounds.resume();
  }
  EXPECT_EQ(log, "start first freed ");
}

TEST(Rounds, ThrowWhatTheCoroutineThrows) {
  std::string log;
  Rounds rounds = failing(log);
  EXPECT_TRUE(rounds.resume());
  rounds.wait();
  EXPECT_THROW(rounds.resume(), std::runtime_error);
}

}  // namespace
}  // namespace abtrain::compress
