// A configuration problem that involves several keys, or one key and the choice that it belongs to.
// The keys are kept apart from the message, so that a reader of files can point at the line of
// each:
//   throw ConflictError({{"method.group_size", "workers"}, "expected ..."});
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abtrain {

struct Conflict {
  // Whole keys (method.group_size), at least one; the one at fault first.
  std::vector<std::string> keys;
  std::string message;  // the expected and the given value, without a key
};

using Conflicts = std::vector<Conflict>;

// If `is_there`, adds a conflict with the message that formatted() makes.
template <class... T>
void conflict_if(
    bool is_there, Conflicts& out, std::vector<std::string> keys, fmt::format_string<T...> text,
    const T&... parts) {
  if (is_there) {
    out.push_back({std::move(keys), formatted(text, parts...)});
  }
}

// An Error(Config) with the text "KEY: MESSAGE", where KEY is the first key.
class ConflictError : public Error {
 public:
  explicit ConflictError(Conflict conflict)
      : Error(ErrorKind::Config, conflict.keys.front() + ": " + conflict.message),
        conflict_(std::move(conflict)) {}
  const Conflict& conflict() const {
    return conflict_;
  }

 private:
  Conflict conflict_;
};

}  // namespace abtrain
