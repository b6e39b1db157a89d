#include "optim/optimizer_kind.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/named.h"

namespace abtrain::optim {
namespace {

constexpr const OptimizerKind* kKinds[] = {&kSgd, &kAdamw, &kMuon, &kQcmdAdagrad, &kQrdaAdagrad};

}  // namespace

std::vector<std::string> optimizer_names() {
  return names_in(kKinds);
}

const OptimizerKind& kind_of(const OptimizerOptions& options) {
  return find_named(kKinds, options.name, "optimizer.name");
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  return kind_of(options).make(options);
}

bool makes_sparse(const OptimizerOptions& options) {
  return kind_of(options).penalty == Penalty::Magnitudes && options.l1 > 0;
}

Conflicts check_nesterov(const OptimizerOptions& options) {
  Conflicts out;
  conflict_if(
      options.nesterov.value_or(false) && options.momentum <= 0, out,
      {"optimizer.nesterov", "optimizer.momentum", "optimizer.name"},
      "Nesterov's form needs a momentum above 0");
  return out;
}

Conflicts check(
    const OptimizerOptions& options, const ScheduleOptions& schedule, const StatedLength& length) {
  const OptimizerKind& kind = kind_of(options);
  Conflicts out;
  conflict_if(
      std::ranges::adjacent_find(schedule.milestones, std::greater_equal<>()) !=
          schedule.milestones.end(),
      out, {"schedule.milestones"}, "expected ascending shares");
  check_warmup(
      "schedule.warmup_steps", schedule.warmup_steps, length, "step at the full rate", out,
      /*may_fill=*/true);
  conflict_if(
      kind.dual_averaging && schedule.name != ScheduleName::Constant, out,
      {"schedule.name", "optimizer.name"},
      "{} scales the sum of all gradients by the current rate: a rate "
      "that falls to 0 takes the weights back to where they started; "
      "expected constant, got {}",
      kind.name, name_of(schedule.name));
  if (kind.check != nullptr) {
    std::ranges::move(kind.check(options), std::back_inserter(out));
  }
  return out;
}

}  // namespace abtrain::optim
