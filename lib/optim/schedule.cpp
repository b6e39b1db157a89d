#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace abtrain::optim {

Schedule::Schedule(const ScheduleOptions& options, double peak, const RunLength& run)
    : options_(options),
      peak_(peak),
      warmup_(options.warmup_steps.in_steps(run)),
      total_(run.steps) {}

double Schedule::at(std::int64_t t) const {
  if (t < warmup_) {
    const double share = static_cast<double>(t) / static_cast<double>(warmup_);
    const double from = std::min(options_.warmup_from, peak_);
    return from + (peak_ - from) * share;
  }
  const auto length = static_cast<double>(std::max<std::int64_t>(1, total_ - warmup_));
  const double share = std::min(1.0, static_cast<double>(t - warmup_) / length);
  if (options_.name == ScheduleName::Cosine) {
    return options_.final_lr +
           (peak_ - options_.final_lr) * 0.5 * (1 + std::cos(std::numbers::pi * share));
  }
  if (options_.name == ScheduleName::Linear) {
    return peak_ + (options_.final_lr - peak_) * share;
  }
  if (options_.name == ScheduleName::Step) {
    double rate = peak_;
    for (const double milestone : options_.milestones) {
      if (share >= milestone) {
        rate *= options_.step_factor;
      }
    }
    return rate;
  }
  return peak_;
}

}  // namespace abtrain::optim
