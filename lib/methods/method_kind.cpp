#include "methods/method_kind.h"

#include "base/named.h"
#include "comm/traffic.h"

namespace abtrain::methods {
namespace {

constexpr const MethodKind* kKinds[] = {&kAb, &kDdp, &kLocalSgd, &kDiloco};

}  // namespace

std::vector<std::string> method_names() {
  return names_in(kKinds);
}

void add_method_fields(Fields& fields, MethodOptions& options) {
  for (const MethodKind* kind : kKinds) {
    if (kind->add_fields != nullptr) {
      kind->add_fields(fields, options);
    }
  }
}

const MethodKind& kind_of(const MethodOptions& options) {
  return find_named(kKinds, options.name, "method.name");
}

TrafficPlan plan_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside) {
  TrafficPlan plan = kind_of(setup.options).traffic(setup, run, sizes, rank, beside);
  if (setup.renews_statistics) {
    plan.total += comm::all_reduce_bytes(sizes.buffers, 4, setup.workers, rank);
  }
  return plan;
}

}  // namespace abtrain::methods
