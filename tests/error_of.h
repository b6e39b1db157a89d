// What an action throws, for tests of errors.
//
//   expect_error([&] { load(file); }, ErrorKind::DamagedData, {file, "checksum"});
//   EXPECT_EQ(error_of([&] { load(file); }), Thrown(65, file + ": wrong checksum"));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abtrain {

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

using Thrown = std::pair<int, std::string>;  // exit code and message of an Error

// What `action` throws; 0 and "" where it throws nothing.
inline Thrown error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  }
  return {0, ""};
}

// `action` throws an Error of `kind` with this message, which has all `parts`.
inline std::string expect_error(
    const std::function<void()>& action, ErrorKind kind, const std::vector<std::string>& parts = {},
    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const ::testing::ScopedTrace caller(file, line, "expect_error");
  const auto [code, message] = error_of(action);
  EXPECT_EQ(code, static_cast<int>(kind)) << (code == 0 ? "nothing was thrown" : message);
  for (const std::string& part : parts) {
    expect_has(message, part);
  }
  return message;
}

}  // namespace abtrain
