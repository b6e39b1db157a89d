#include "config/run_notes.h"

#include "base/text.h"
#include "compress/schemes.h"
#include "methods/method_kind.h"
#include "orders/order_kind.h"

namespace abtrain::config {

std::vector<std::string> run_notes(const RunOptions& o, const RunLength& length) {
  const methods::MethodKind& kind = methods::kind_of(o.method);
  std::vector<std::string> out =
      kind.notes != nullptr ? kind.notes(method_setup(o), length) : std::vector<std::string>();
  const methods::OuterOptions& outer = o.method.outer;
  const methods::OuterOptions defaults;
  if (kind.changes_weights && !outer.name && kind.outer == methods::OuterRule::Average &&
      (outer.lr != defaults.lr || outer.momentum != defaults.momentum)) {
    out.push_back(formatted(
        "method.outer.name: auto is average for {}, which uses neither method.outer.lr nor "
        "method.outer.momentum",
        kind.name));
  }
  const auto note_if = [&](bool applies, const char* key, std::int64_t value,
                           const char* consequence) {
    if (applies) {
      out.push_back(
          formatted("{}: {} of the run's {} steps: {}", key, value, length.steps, consequence));
    }
  };
  const std::int64_t rising = o.schedule.warmup_steps.in_steps(length);
  note_if(rising > length.steps, "schedule.warmup_steps", rising, "optimizer.lr is never reached");
  note_if(
      compress::compresses(o.reducer) && o.reducer.dense_steps >= length.steps,
      "reducer.dense_steps", o.reducer.dense_steps, "nothing is compressed");
  const std::int64_t saved = o.checkpoint.every.in_steps(length);
  note_if(
      o.checkpoint.every.unit != Duration::Unit::Epochs && saved > length.steps, "checkpoint.every",
      saved, "a checkpoint is only written when the run is stopped");
  if (orders::kind_of(o.order).is_balanced() && length.steps <= length.steps_per_epoch) {
    out.push_back(formatted(
        "order.name: {} orders the second epoch by the first one, but the "
        "run's {} steps are not more than the {} of one",
        o.order.name, length.steps, length.steps_per_epoch));
  }
  return out;
}

}  // namespace abtrain::config
