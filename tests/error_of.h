// What an action throws, for tests of errors.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace abtrain {

// Exit code and message of the Error that `action` throws; 0 where it does not.
template <class Action>
std::pair<int, std::string> error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  }
  return {0, ""};
}

}  // namespace abtrain
