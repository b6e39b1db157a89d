#include "config/run_notes.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "linalg/rank_rule.h"
#include "methods/ab/phase.h"
#include "methods/local/plan.h"
#include "orders/order_kind.h"

namespace abtrain::config {

namespace {

using Notes = std::vector<std::string>;

void note_ab(
    const methods::MethodOptions& m,
    std::int64_t steps,
    Notes& out,
    const RunLength& length) {
  const methods::PhasePlan plan = methods::make_phase_plan(m, length);
  if (methods::count_phases(plan, steps).sync == 0) {
    out.push_back(
        str("method.sync_every: a synchronisation every ",
            plan.interval,
            " steps, but only ",
            steps - plan.warmup,
            " come after the warm-up: the groups meet only when the run ends"));
  }
  const std::int64_t longest = std::max(plan.warmup, plan.full_rank);
  if (m.full_phase.sync_every > std::max<std::int64_t>(1, longest)) {
    out.push_back(
        str("method.full_phase.sync_every: an average every ",
            m.full_phase.sync_every,
            " dense steps, but no dense phase has more than ",
            longest,
            ": parameters are averaged only at its end"));
  }
  const std::int64_t cuts = methods::count_cuts(m, plan, steps);
  if (m.rank.rule == linalg::RankRuleName::Energy && m.rank.keep < 1 &&
      cuts > 1) {
    const double left = 100 * std::pow(m.rank.keep, static_cast<double>(cuts));
    out.push_back(
        str("method.rank.keep: each decomposition cuts what the last one left, "
            "so keep: ",
            m.rank.keep,
            " over ",
            cuts,
            " decompositions keeps as little as ",
            m.rank.keep,
            "^",
            cuts,
            " = ",
            left < 1 ? "less than 1" : fixed(left, 0),
            " % of a weight's energy"));
  }
}

void note_local(
    const methods::MethodOptions& m,
    Notes& out,
    const RunLength& length) {
  const methods::LocalPlan plan = methods::make_local_plan(m, length);
  const char* const effect =
      m.name == "diloco" ? "no outer step is taken, and the workers meet only"
                         : "the workers meet only";
  std::int64_t never = 0;
  for (std::int64_t f = 0; f < plan.fragments; ++f) {
    never += plan.meetings_of(f) == 0 ? 1 : 0;
  }
  if (never == plan.fragments) {
    out.push_back(
        str("method.sync_every: the first synchronisation would be used after ",
            plan.first_of(0) + plan.delay,
            " steps, but the run has ",
            plan.steps,
            ": ",
            effect,
            " when it ends"));
  } else if (never > 0) {
    out.push_back(
        str("method.sync_every: ",
            never,
            " of ",
            plan.fragments,
            " fragments are not synchronised before the run's ",
            plan.steps,
            " steps end"));
  }
}

}  // namespace

Notes run_notes(const RunOptions& o, const RunLength& length) {
  Notes out;
  if (o.method.name == "ab") {
    note_ab(o.method, length.steps, out, length);
  } else if (methods::has_local_steps(o.method)) {
    note_local(o.method, out, length);
  }
  const auto note =
      [&](const char* key, std::int64_t value, const char* consequence) {
        out.push_back(
            str(key,
                ": ",
                value,
                " of the run's ",
                length.steps,
                " steps: ",
                consequence));
      };
  const std::int64_t rising = o.schedule.warmup_steps.in_steps(length);
  if (rising > length.steps) {
    note("schedule.warmup_steps", rising, "optimizer.lr is never reached");
  }
  if (o.reducer.name != "plain" && o.reducer.dense_steps >= length.steps) {
    note("reducer.dense_steps", o.reducer.dense_steps, "nothing is compressed");
  }
  const std::int64_t saved = o.checkpoint.every.in_steps(length);
  if (o.checkpoint.every.unit != Duration::Unit::Epochs &&
      saved > length.steps) {
    note(
        "checkpoint.every",
        saved,
        "a checkpoint is only written when the run is stopped");
  }
  if (orders::kind_of(o.order).is_balanced() &&
      length.steps <= length.steps_per_epoch) {
    out.push_back(
        str("order.name: ",
            o.order.name,
            " orders the second epoch by the first one, but the run's ",
            length.steps,
            " steps are not more than the ",
            length.steps_per_epoch,
            " of one"));
  }
  return out;
}

}  // namespace abtrain::config
