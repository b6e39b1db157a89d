#include "methods/method_options.h"

#include "base/options.h"
#include "methods/method_kind.h"

namespace abtrain::methods {
namespace {

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
  f.number("lr", o.lr, above_to(0, kLargest), "sgd, nesterov: learning rate of the outer step");
  f.number(
      "momentum", o.momentum, from_to_below(0, 1), "sgd, nesterov: momentum of the outer step");
  f.section(
      "wire", compress::fields_of(o.wire, "auto"),
      "how the changes are sent; auto: by the run's reducer, or for ab "
      "plainly");
  return f;
}

}  // namespace

Fields fields_of(MethodOptions& o) {
  Fields f;
  f.choice("name", o.name, method_names(), "training method");
  f.duration(
      "warmup_steps", o.warmup_steps, between(0, kMaxSteps),
      "ab: dense training before the first decomposition; local-sgd, diloco: "
      "data-parallel training before the first local step");
  f.duration(
      "sync_every", o.sync_every, above_to(0, kMaxSteps),
      "ab, local-sgd, diloco: interval between synchronizations");
  f.section(
      "outer", fields_of(o.outer),
      "ab, local-sgd, diloco: what a synchronization does with the mean change "
      "of the workers' parameters, and how it is sent");
  add_method_fields(f, o);
  return f;
}

}  // namespace abtrain::methods
