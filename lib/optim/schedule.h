// Learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "optim/optim_options.h"

namespace abtrain::optim {

class Schedule {
 public:
  // peak: the optimizer's lr. The rate warms up linearly from warmup_from to
  // the peak over the warm-up steps, then follows the named curve over the
  // rest; cosine and linear end at final_lr.
  Schedule(const ScheduleOptions& options, double peak, const RunLength& run);
  // Learning rate of step t = 0, 1, ..., run.steps - 1.
  double at(std::int64_t t) const;

 private:
  ScheduleOptions options_;
  double peak_;
  std::int64_t warmup_;
  std::int64_t total_;
};

}  // namespace abtrain::optim
