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
  // sgd | adamw | qcmd-adagrad | qrda-adagrad
  std::string name = "adamw";
  double lr = 1e-3;
  double weight_decay = 0.05;
  bool decay_all = false;  // decay biases and norms too
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
  // adagrad: weight of the term l1 |x|, which makes weights x sparse
  double l1 = 0;
  double delta = 1e-3;          // added to the root of the sum of squares
  std::string center = "init";  // qrda: init | zero, `start` in ops/adagrad.h
};

struct ScheduleOptions {
  std::string name = "cosine";  // constant | cosine | linear | step
  Duration warmup_steps;        // linear warm-up
  double warmup_from = 1e-5;    // learning rate of the first warm-up step
  double final_lr = 0;          // learning rate after the last step
  double step_factor = 0.1;     // step: factor applied at each milestone
  std::vector<double> milestones = {0.5, 0.75};  // step: fractions of the run
};

inline bool is_dual_averaging(const OptimizerOptions& options) {
  return options.name == "qrda-adagrad";
}
inline bool is_adagrad(const OptimizerOptions& options) {
  return options.name == "qcmd-adagrad" || is_dual_averaging(options);
}
// Whether weights can become exactly 0.
inline bool makes_sparse(const OptimizerOptions& options) {
  return is_adagrad(options) && options.l1 > 0;
}

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(OptimizerOptions& options);
Fields fields_of(ScheduleOptions& options);

}  // namespace abtrain::optim
