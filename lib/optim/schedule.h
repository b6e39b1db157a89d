// The learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "optim/optim_options.h"

namespace abtrain::optim {

// The rate warms up linearly from warmup_from to the peak over the warm-up steps, then follows the
// named curve over the rest of the run; cosine and linear end at final_lr.
struct Schedule {
  ScheduleOptions options;
  double peak;  // the optimizer's lr
  RunLength run;

  // Learning rate of step t = 0, 1, ..., run.steps - 1.
  double at(std::int64_t t) const;
};

}  // namespace abtrain::optim
