// Typed errors. The kind of an error is also the exit code of the program; the codes follow
// sysexits.h if it has a suitable code.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/text.h"

namespace abtrain {

enum class ErrorKind : int {
  Usage = 2,          // bad command line
  DamagedData = 65,   // an input exists but is damaged
  MissingInput = 66,  // an input file or device does not exist
  PeerLost = 69,      // another worker is gone, or a collective timed out
  Diverged = 70,      // a loss or weight is not finite
  Io = 74,            // reading or writing failed
  Stopped = 75,       // stopped on request, with the checkpoint saved
  Config = 78,        // the configuration is wrong
};

// All exit codes of the program. Besides the above: 0, 1 for a bug, 127 if the program did not
// start, and 130 and 141 after SIGINT and SIGPIPE (docs/commands.md).
inline constexpr std::array kExitCodes{0, 1, 2, 65, 66, 69, 70, 74, 75, 78, 127, 130, 141};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const {
    return kind_;
  }
  int exit_code() const {
    return static_cast<int>(kind_);
  }

 private:
  ErrorKind kind_;
};

// An error that is printed without a prefix, because each line of its message begins with a
// location (file:line:column), as editors expect.
class LocatedError : public Error {
 public:
  using Error::Error;
};

// An error in one training step. Its message begins with the step, counted from 1.
class StepError : public Error {
 public:
  StepError(ErrorKind kind, std::int64_t at, const std::string& message)
      : Error(kind, formatted("step {}: {}", at, message)), step(at) {}

  const std::int64_t step;
};

}  // namespace abtrain

// ABT_CHECK(ok, kind, "text {}", parts...): unless `ok`, throws Error(ErrorKind::kind) with the
// message formatted("text {}", parts...). The parts are evaluated only if it throws.
#define ABT_CHECK(condition, kind, ...)                                                      \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      throw ::abtrain::Error(::abtrain::ErrorKind::kind, ::abtrain::formatted(__VA_ARGS__)); \
    }                                                                                        \
  } while (false)

// ABT_ASSERT(ok, "text {}", parts...): unless `ok`, throws std::logic_error. For conditions that
// only a bug in abtrain can violate.
#define ABT_ASSERT(condition, text, ...)                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      throw std::logic_error(::abtrain::formatted(                                         \
          "{}:{}: internal error: " text, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                      \
  } while (false)
