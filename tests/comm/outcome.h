// How an action ends, and what its error says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"

namespace abtrain::comm {

struct Outcome {
  ErrorKind kind = ErrorKind::Usage;
  std::string message;
};

// Runs the body, which must end in an Error on the calling thread.
inline Outcome outcome_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "no error came";
  return {};
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace abtrain::comm
