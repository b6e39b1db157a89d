// Options of the config's `optimizer:` and `schedule:` sections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"

namespace abtrain {
class Fields;
}

namespace abtrain::optim {

enum class Center { Init, Zero };
enum class MuonScale { MatchRms, Spectral };
enum class MuonMatrices { All, Factors };

struct OptimizerOptions {
  std::string name = "adamw";  // one of optimizer_names()
  double lr = 1e-3;
  double weight_decay = 0.05;
  bool decay_all = false;  // decay biases and norms too
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  std::optional<bool> nesterov = {};  // nullopt: true for muon, false for sgd
  // muon: factor applied to a matrix's orthogonalized momentum
  MuonScale scale = MuonScale::MatchRms;
  // muon: the matrices that are orthogonalized; AdamW trains the others
  MuonMatrices matrices = MuonMatrices::All;
  double other_lr = 1e-3;     // muon: lr of the parameters that AdamW trains
  std::int64_t ns_steps = 5;  // muon: Newton-Schulz steps (optim/newton_schulz.h)
  // qcmd-adagrad, qrda-adagrad: factor l1 of the term l1 |x|, which makes weights x sparse
  double l1 = 0;
  double delta = 1e-3;           // the same two: added to the root of the sum of squares
  Center center = Center::Init;  // qrda-adagrad: `start` in ops/adagrad.h
};

enum class ScheduleName { Constant, Cosine, Linear, Step };

struct ScheduleOptions {
  ScheduleName name = ScheduleName::Cosine;
  Duration warmup_steps;                         // linear warm-up
  double warmup_from = 1e-5;                     // learning rate of the first warm-up step
  double final_lr = 0;                           // learning rate after the last step
  double step_factor = 0.1;                      // step: factor applied at each milestone
  std::vector<double> milestones = {0.5, 0.75};  // step: fractions of the run
};

// The name as a configuration writes it.
std::string name_of(ScheduleName name);

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(OptimizerOptions& options);
Fields fields_of(ScheduleOptions& options);

}  // namespace abtrain::optim
