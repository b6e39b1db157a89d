// Options of the config's `optimizer:` and `schedule:` sections.
#pragma once

#include <string>
#include <vector>

#include "base/duration.h"

namespace abtrain {
class Fields;
}

namespace abtrain::optim {

struct OptimizerOptions {
  std::string name = "adamw";  // sgd | adamw
  double lr = 1e-3;
  double weight_decay = 0.05;
  bool decay_all = false;  // decay biases and norms too
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
};

struct ScheduleOptions {
  std::string name = "cosine";  // constant | cosine | linear | step
  Duration warmup_steps;        // linear warm-up
  double warmup_from = 1e-5;    // rate of the first warm-up step
  double final_lr = 0;          // rate after the last step
  double step_factor = 0.1;     // step: factor at each milestone
  std::vector<double> milestones = {0.5, 0.75};  // step: shares of the run
};

// The table of their keys, ranges and help (base/options.h).
Fields fields_of(OptimizerOptions& options);
Fields fields_of(ScheduleOptions& options);

}  // namespace abtrain::optim
