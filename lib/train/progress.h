// A worker's progress, as recorded in its log and its checkpoints.
#pragma once

#include <cstdint>
#include <optional>

#include "state/archive.h"
#include "train/score.h"

namespace abtrain::train {

struct Progress {
  std::int64_t updated = 0;   // steps that the parameters have seen
  std::int64_t done = -1;     // steps done; -1: the run has not begun
  bool finished = false;      // all workers have the final model
  std::int64_t saved_at = -1; // steps done at the last save or resume

  double last_loss = 0;
  double rate = 0;      // of the last step
  double loss_sum = 0;  // this and the count: since the last `step` event
  std::int64_t loss_count = 0;
  std::int64_t event_step = 0;
  double event_seconds = 0;  // of training, at that event

  std::optional<double> validation = {};  // quality, if evaluated after this step
  double best = -1;                       // best `validation` at a save
  std::optional<Score> before = {};       // score of the initial weights, if evaluated

  void take_loss(double loss) {
    last_loss = loss;
    loss_sum += loss;
    ++loss_count;
  }
  // A `step` event has been logged after `step` steps and `seconds` of training.
  void begin_window(std::int64_t step, double seconds) {
    loss_sum = 0;
    loss_count = 0;
    event_step = step;
    event_seconds = seconds;
  }
  // Saves or loads the members that a resumed run continues from. `pauses`: seconds of evaluations
  // and checkpoints up to now.
  void archive(state::Archive& archive, double pauses);
  // The same for `before`.
  void archive_before(state::Archive& archive);
};

}  // namespace abtrain::train
