#include "comm/groups.h"

#include <string>

#include "base/conflict.h"
#include "base/error.h"

namespace abtrain::comm {

bool fits(int workers, std::int64_t group_size, bool one_role) {
  return group_size >= 1 && workers % group_size == 0 &&
         (one_role || workers / group_size >= 2);
}

std::int64_t auto_group_size(int workers) {
  int count = 2;
  while (count < workers && workers % count != 0) {
    ++count;
  }
  return workers == 1 ? 1 : workers / count;
}

namespace {

// Returns the end of the error message: the sizes that fit, or why none does.
std::string advice(int workers, bool one_role) {
  std::string sizes;
  for (int size = 1; size <= workers; ++size) {
    if (fits(workers, size, one_role)) {
      sizes += formatted("{}{}", sizes.empty() ? "" : ", ", size);
    }
  }
  return sizes.empty() ? "training A and B in different groups needs two workers or more; "
                         "`method.trains: both` and `method.sync: only-b` work with any number"
                       : "sizes that fit: " + sizes;
}

}  // namespace

Groups make_groups(int workers, std::optional<std::int64_t> group_size, bool one_role) {
  ABT_CHECK(workers >= 1, Config, "workers: expected at least 1, got {}", workers);
  const std::int64_t size = group_size.value_or(auto_group_size(workers));
  if (!fits(workers, size, one_role)) {
    throw ConflictError(
        {{"method.group_size", "workers", "method.sync", "method.name"},
         formatted(
             "{} does not fit {}{}{}; {}", group_size ? std::to_string(*group_size) : "auto",
             workers, workers == 1 ? " worker" : " workers",
             workers == size ? " (one group, which can train only one factor: `only-b`)" : "",
             advice(workers, one_role))});
  }
  const auto members = static_cast<int>(size);
  return {members, workers / members, one_role};
}

}  // namespace abtrain::comm
