#include "compress/reducer.h"

#include "base/error.h"
#include "base/text.h"
#include "compress/plain.h"
#include "compress/schemes.h"

namespace abtrain::compress {

namespace {

struct Scheme {
  const char* name;
  std::unique_ptr<Reducer> (*make)(const ReducerOptions&, std::uint64_t seed);
};

constexpr Scheme kSchemes[] = {
    {"topk", make_topk},
    {"topk-chunked", make_topk_chunked},
    {"thc", make_thc},
    {"thc-saturated", make_thc_saturated},
    {"powersgd", make_powersgd},
    {"onebit", make_onebit},
    {"twobit", make_twobit},
    {"threshold", make_threshold},
    {"ternary", make_ternary},
    {"hylo", make_hylo},
};

}  // namespace

std::unique_ptr<Reducer> make_reducer(
    const ReducerOptions& options, std::uint64_t seed) {
  if (options.name == "plain") {
    return make_plain(options);
  }
  for (const Scheme& scheme : kSchemes) {
    if (options.name == scheme.name) {
      return scheme.make(options, seed);
    }
  }
  throw Error(
      ErrorKind::Config,
      str("reducer.name: expected one of ",
          join(reducer_names(), ", "),
          "; got '",
          options.name,
          "'"));
}

}  // namespace abtrain::compress
