// Records the costs of one worker's training: seconds of wall time and bytes sent, and what both
// were spent on. A ledger is part of each checkpoint and continues after a resume.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "comm/control/control.h"
#include "comm/meter.h"
#include "state/archive.h"
#include "train/core_use.h"

namespace abtrain::train {

using TimeSplit = comm::Spent;

// Bytes sent by a worker, split by purpose, by range and by phase. Metrics are counted in `metrics`
// only.
struct TrafficSplit {
  double gradient = 0, sync = 0, factors = 0, orders = 0, metrics = 0;
  double inside_groups = 0, between_groups = 0;
  double full_phase = 0, ab_phase = 0, switches = 0;
  double total() const {
    return gradient + sync + factors + orders;
  }
};

// Seconds spent on averaging gradients, and the errors of the averages. In TimeSplit, encode and
// decode are part of `compute`, collective is part of `communication`.
struct ReducerSplit {
  double encode = 0, collective = 0, decode = 0;
  // Sum of the measured vNMSE, |average - mean|^2 / |mean|^2, and number of measurements.
  double vnmse_sum = 0, vnmse_count = 0;
};

struct WorkerFigures {
  TimeSplit seconds = {};
  ReducerSplit reducer = {};
  TrafficSplit traffic = {};
  CoreTime cores = {};            // since this process began to train
  double trained_parameters = 0;  // by this worker, at the end
};

WorkerFigures operator+(const WorkerFigures& a, const WorkerFigures& b);

class Ledger {
 public:
  struct Pause {
    Stopwatch watch;
    double communicated;  // seconds of communication before the pause
  };

  // The meter to pass to comm::metered() for each of the worker's communicators.
  comm::TrafficMeter& meter() {
    return meter_;
  }
  // Starts the clock; communication up to now is not part of the training.
  void start();
  // Seconds on the clock since the run began, including pauses.
  double seconds() const {
    return watch_.seconds();
  }
  double pause_seconds() const {
    return own_.seconds.evaluate + own_.seconds.checkpoint;
  }
  // Seconds without pauses; constant once the training has ended.
  double train_seconds() const {
    return trained_seconds_.value_or(seconds() - pause_seconds());
  }
  // Ends the training. Evaluations and checkpoints are still counted after it.
  void end() {
    trained_seconds_ = train_seconds();
  }

  // Runs the body and adds the bytes that it sends to the figure `phase`.
  template <class Body>
  void count(double TrafficSplit::*phase, const Body& body) {
    const auto before = static_cast<double>(meter_.training_bytes());
    body();
    own_.traffic.*phase += static_cast<double>(meter_.training_bytes()) - before;
  }
  // Call these before and after an evaluation or a checkpoint, whose time and collectives are not
  // part of the training. `account`: the figure to which its seconds are added. Both functions wait
  // for the GPU.
  Pause begin_pause();
  void end_pause(const Pause& pause, double TimeSplit::*account);

  // What the time so far was spent on, while training goes on. On a GPU the last collectives may be
  // missing. Here and below, `counts` has the figures of Trainer::counts() since this process
  // began; they are added to the ledger's own.
  TimeSplit spent(const WorkerFigures& counts) const;

  // All figures up to now. Waits for the GPU.
  WorkerFigures figures(const WorkerFigures& counts, double trained_parameters);

  // Saves all figures up to now, or continues from saved ones.
  void archive(state::Archive& archive, const WorkerFigures& counts);
  // Adds seconds in which this worker stood still to its training time, as communication.
  void add_waiting(double seconds) {
    watch_ = Stopwatch(watch_.seconds() + seconds);
    paused_seconds_ -= seconds;
  }
  // Replaces traffic, and seconds of communication, SVD and data, by their means over the workers
  // that saved these states.
  void average(std::vector<state::State>& states);

 private:
  comm::TrafficMeter meter_;
  Stopwatch watch_;            // since the loop began
  double paused_seconds_ = 0;  // communication outside the training
  // Seconds of pauses, bytes by phase and, after a resume, the `counts` that were saved.
  WorkerFigures own_;
  std::optional<double> trained_seconds_;  // once the training has ended
};

}  // namespace abtrain::train
