#include "methods/method_kind.h"

#include "base/named.h"
#include "base/options.h"
#include "comm/traffic.h"

namespace abtrain::methods {
namespace {

constexpr const MethodKind* kKinds[] = {&kAb, &kDdp, &kLocalSgd, &kDiloco};

Fields fields_of(OuterOptions& o) {
  Fields f;
  f.choice<std::optional<OuterRule>>(
      "name", o.name,
      {{"auto", std::nullopt},
       {"average", OuterRule::Average},
       {"sgd", OuterRule::Sgd},
       {"nesterov", OuterRule::Nesterov}},
      "the outer optimizer; average: the mean itself; auto: nesterov for "
      "diloco, else average");
  f.number("lr", o.lr, above_to(0, kLargest), "learning rate of the outer step")
      .of({"auto", "sgd", "nesterov"});
  f.number("momentum", o.momentum, from_to_below(0, 1), "momentum of the outer step")
      .of({"auto", "sgd", "nesterov"});
  f.section(
      "wire", compress::fields_of(o.wire, "auto"),
      "how the changes are sent; auto: by the run's reducer, or for ab "
      "plainly");
  return f;
}

}  // namespace

Fields fields_of(MethodOptions& o) {
  Fields f;
  f.choice("name", o.name, names_in(kKinds), "training method");
  f.duration(
       "warmup_steps", o.warmup_steps, between(0, kMaxSteps),
       "data-parallel training of the whole model before the first decomposition or local step")
      .of({"ab", "local-sgd", "diloco"});
  f.duration(
       "sync_every", o.sync_every, above_to(0, kMaxSteps), "interval between synchronizations")
      .of({"ab", "local-sgd", "diloco"});
  f.section(
       "outer", fields_of(o.outer),
       "what a synchronization does with the mean change "
       "of the workers' parameters, and how it is sent")
      .of({"ab", "local-sgd", "diloco"});
  for (const MethodKind* kind : kKinds) {
    if (kind->add_fields != nullptr) {
      Fields own;
      kind->add_fields(own, o);
      f.include(std::move(own), kind->name);
    }
  }
  return f;
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
