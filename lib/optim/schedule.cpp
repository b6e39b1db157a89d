#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace abtrain::optim {

double Schedule::at(std::int64_t t) const {
  const std::int64_t warmup = options.warmup_steps.in_steps(run);
  const double place = run.at(t);
  if (place < static_cast<double>(warmup)) {
    const double share = place / static_cast<double>(warmup);
    const double from = std::min(options.warmup_from, peak);
    return from + (peak - from) * share;
  }
  const auto length = static_cast<double>(std::max<std::int64_t>(1, run.steps - warmup));
  const double share = std::min(1.0, (place - static_cast<double>(warmup)) / length);
  if (options.name == ScheduleName::Cosine) {
    return options.final_lr +
           (peak - options.final_lr) * 0.5 * (1 + std::cos(std::numbers::pi * share));
  }
  if (options.name == ScheduleName::Linear) {
    return peak + (options.final_lr - peak) * share;
  }
  if (options.name == ScheduleName::Step) {
    double rate = peak;
    for (const double milestone : options.milestones) {
      if (share >= milestone) {
        rate *= options.step_factor;
      }
    }
    return rate;
  }
  return peak;
}

}  // namespace abtrain::optim
