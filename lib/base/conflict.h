// A configuration error that usually involves several keys, such as a number and the choice that
// forbids it. The keys are stored apart from the message, so that the code that reads configuration
// files can point at a key's line:
//   throw ConflictError({{"method.group_size", "workers"}, "expected ..."});
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abtrain {

struct Conflict {
  // Full key names, such as method.group_size: at least one, the key at fault first.
  std::vector<std::string> keys;
  std::string message;  // the expected and the given value, without a key
};

using Conflicts = std::vector<Conflict>;

// If `is_there`, adds a conflict with the message formatted(text, parts...).
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
