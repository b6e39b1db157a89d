// A worker's progress, as recorded in its log and its checkpoints.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "state/archive.h"
#include "train/score.h"

namespace abtrain::train {

struct Progress {
  std::int64_t updated = 0;    // updates applied to the parameters
  std::int64_t done = -1;      // complete steps; -1: the run has not begun
  bool finished = false;       // all workers have the final model
  std::int64_t saved_at = -1;  // `done` at the last save or resume

  double last_loss = 0;
  double rate = 0;  // learning rate of the last step
  // Since the last `step` event of metrics.jsonl:
  double loss_sum = 0;
  std::int64_t loss_count = 0;
  // At that event: steps done, and seconds of training.
  std::int64_t event_step = 0;
  double event_seconds = 0;

  // Less than the `validation` of any model: R^2 of a regression may be far below 0.
  static constexpr double kNone = std::numeric_limits<double>::lowest();
  std::optional<double> validation = {};  // Score::quality(), if evaluated after this step
  double best = kNone;                    // best `validation` at a save
  std::optional<Score> before = {};       // score of the initial weights, if evaluated

  void take_loss(double loss) {
    last_loss = loss;
    loss_sum += loss;
    ++loss_count;
  }
  // Call when a `step` event has been logged, after `step` steps and `seconds` of training.
  void begin_window(std::int64_t step, double seconds) {
    loss_sum = 0;
    loss_count = 0;
    event_step = step;
    event_seconds = seconds;
  }
  // Saves or loads the members that a resumed run continues from. `pauses`: seconds of evaluations
  // and checkpoints up to now.
  void archive(state::Archive& archive, double pauses);
  // Saves or loads `before`.
  void archive_before(state::Archive& archive);
};

}  // namespace abtrain::train
