#include "comm/groups.h"

#include <charconv>
#include <string>

#include "base/error.h"

namespace abtrain::comm {

namespace {

bool fits(int workers, int size, bool only_b) {
  return size >= 1 && workers % size == 0 &&
         (only_b || workers / size % 2 == 0);
}

// The end of the message: the sizes that fit, or why none does.
std::string advice(int workers, bool only_b) {
  std::string sizes;
  for (int size = 1; size <= workers; ++size) {
    if (fits(workers, size, only_b)) {
      sizes += str(sizes.empty() ? "" : ", ", size);
    }
  }
  return sizes.empty()
             ? "training both A and B needs an even number of groups, so an "
               "even number of workers; `method.sync: only-b` works with any "
               "number"
             : "sizes that fit: " + sizes;
}

}  // namespace

Groups make_groups(int workers, std::string_view group_size, bool only_b) {
  ABT_CHECK(
      workers >= 1, Config, "workers: expected at least 1, got ", workers);
  int size = 0;
  if (group_size == "auto") {
    size = workers == 1 ? 1 : workers % 2 == 0 ? workers / 2 : 0;
  } else {
    const char* last = group_size.data() + group_size.size();
    const auto [end, error] = std::from_chars(group_size.data(), last, size);
    ABT_CHECK(
        error == std::errc() && end == last && size >= 1,
        Config,
        "method.group_size: expected auto or a number from 1 up, got '",
        group_size,
        "'");
  }
  ABT_CHECK(
      fits(workers, size, only_b),
      Config,
      "method.group_size: ",
      group_size,
      " does not fit ",
      workers,
      workers == 1 ? " worker" : " workers",
      workers == size
          ? " (one group, which can train only one factor: `only-b`)"
          : "",
      "; ",
      advice(workers, only_b));
  return {size, workers / size, only_b};
}

}  // namespace abtrain::comm
