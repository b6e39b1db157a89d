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
  // adagrad: x of weights is made sparse by l1 |x|.
  double l1 = 0;
  double delta = 1e-3;          // added to the root of the squares' sum
  std::string center = "init";  // qrda: init | zero, where x is pulled to
};

struct ScheduleOptions {
  std::string name = "cosine";  // constant | cosine | linear | step
  Duration warmup_steps;        // linear warm-up
  double warmup_from = 1e-5;    // rate of the first warm-up step
  double final_lr = 0;          // rate after the last step
  double step_factor = 0.1;     // step: factor at each milestone
  std::vector<double> milestones = {0.5, 0.75};  // step: shares of the run
};

inline bool is_dual_averaging(const OptimizerOptions& options) {
  return options.name == "qrda-adagrad";
}
inline bool is_adagrad(const OptimizerOptions& options) {
  return options.name == "qcmd-adagrad" || is_dual_averaging(options);
}
// Whether weights become exactly 0.
inline bool makes_sparse(const OptimizerOptions& options) {
  return is_adagrad(options) && options.l1 > 0;
}

// The table of their keys, ranges and help (base/options.h).
Fields fields_of(OptimizerOptions& options);
Fields fields_of(ScheduleOptions& options);

}  // namespace abtrain::optim
