// Learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "optim/optim_options.h"

namespace abtrain::optim {

class Schedule {
 public:
  // peak: the optimizer's lr. Linear warm-up from warmup_from to the peak over
  // the warm-up steps, then the named curve down to final_lr over the rest.
  Schedule(
      const ScheduleOptions& options,
      double peak,
      const RunLength& run);
  // Rate of step t = 0, 1, ... run.steps - 1.
  double at(std::int64_t t) const;

 private:
  ScheduleOptions options_;
  double peak_;
  std::int64_t warmup_;
  std::int64_t total_;
};

}  // namespace abtrain::optim
