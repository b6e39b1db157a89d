#include "methods/method_kind.h"

#include "base/error.h"
#include "base/text.h"

namespace abtrain::methods {
namespace {

constexpr const MethodKind* kKinds[] = {&kAb, &kDdp, &kLocalSgd, &kDiloco};

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodKind* kind : kKinds) {
    names.emplace_back(kind->name);
  }
  return names;
}

const MethodKind& kind_of(const MethodOptions& options) {
  for (const MethodKind* kind : kKinds) {
    if (options.name == kind->name) {
      return *kind;
    }
  }
  throw Error(
      ErrorKind::Config,
      formatted(
          "method.name: expected one of {}; got '{}'",
          join(method_names(), ", "),
          options.name));
}

TrafficPlan plan_traffic(
    const MethodSetup& setup,
    const RunLength& run,
    const ModelSizes& sizes,
    int rank,
    const StepTraffic& beside) {
  return kind_of(setup.options).traffic(setup, run, sizes, rank, beside);
}

std::int64_t sum_of_steps(
    const StepTraffic& beside,
    std::int64_t first,
    std::int64_t end,
    std::int64_t numel,
    int members,
    int member) {
  std::int64_t sum = 0;
  for (std::int64_t t = first; beside && t < end; ++t) {
    sum += beside(t, first, numel, members, member);
  }
  return sum;
}

}  // namespace abtrain::methods
