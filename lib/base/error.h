// Typed errors. The kind of an error is also the exit code of the program
// (sysexits.h where it has one).
#pragma once

#include <stdexcept>
#include <string>

#include "base/text.h"

namespace abtrain {

enum class ErrorKind : int {
  Usage = 2,          // bad command line
  DamagedData = 65,   // an input is there, but damaged
  MissingInput = 66,  // an input file or device is not there
  PeerLost = 69,      // another worker is gone, or a collective timed out
  Diverged = 70,      // a loss or weight is not finite
  Io = 74,            // reading or writing failed
  Stopped = 75,       // stopped on request, checkpoint safe
  Config = 78,        // the configuration is wrong
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const {
    return kind_;
  }
  int exit_code() const {
    return static_cast<int>(kind_);
  }

 private:
  ErrorKind kind_;
};

// Each line of the message begins with the place it is about (file:line:column),
// so that editors find it: printed as it is.
class LocatedError : public Error {
 public:
  using Error::Error;
};

}  // namespace abtrain

// ABT_CHECK(ok, kind, parts...) throws Error(ErrorKind::kind) with the parts
// streamed into one message.
#define ABT_CHECK(condition, kind, ...)                       \
  do {                                                        \
    if (!(condition)) {                                       \
      throw ::abtrain::Error(                                 \
          ::abtrain::ErrorKind::kind, ::abtrain::str(__VA_ARGS__)); \
    }                                                         \
  } while (false)

// ABT_ASSERT(ok, parts...) guards what only a bug in abtrain can break.
#define ABT_ASSERT(condition, ...)                                     \
  do {                                                                 \
    if (!(condition)) {                                                \
      throw std::logic_error(::abtrain::str(                           \
          __FILE__, ":", __LINE__, ": internal error: ", __VA_ARGS__)); \
    }                                                                  \
  } while (false)
