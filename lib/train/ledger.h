// Accounts for the costs of training for a worker: the time on the clock of its loop, the bytes it
// sends, and how both were spent. A ledger is saved with the run and continues after a resume.
// Seconds are wall time.
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

// Bytes sent by a worker. Metrics are counted in `metrics` only.
struct TrafficSplit {
  double gradient = 0, sync = 0, factors = 0, orders = 0, metrics = 0;
  double inside_groups = 0, between_groups = 0;
  double full_phase = 0, ab_phase = 0, switches = 0;
  double total() const {
    return gradient + sync + factors + orders;
  }
};

// Seconds spent on averaging gradients, and its errors. Encode and decode are part of `compute`,
// collective is part of `communication`.
struct ReducerSplit {
  double encode = 0, collective = 0, decode = 0;
  // Sum of the vNMSE of the averaged gradient, and number of its evaluations.
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
    double communicated;  // seconds, before the pause
  };

  // For the worker's communicators (comm::metered()).
  comm::TrafficMeter& meter() {
    return meter_;
  }
  // Starts the clock; communication up to now is not part of the training.
  void start();
  // The clock's reading, including pauses.
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

  // Runs the body and adds the bytes that it sends to `phase`.
  template <class Body>
  void count(double TrafficSplit::*phase, const Body& body) {
    const auto before = static_cast<double>(meter_.training_bytes());
    body();
    own_.traffic.*phase += static_cast<double>(meter_.training_bytes()) - before;
  }
  // Enclose an evaluation or a checkpoint: its time and collectives are not part of the training.
  // `account`: the figure to which its seconds are added. Both functions wait for the GPU.
  Pause begin_pause();
  void end_pause(const Pause& pause, double TimeSplit::*account);

  // The split of the time so far, while training goes on. On a GPU the last collectives may be
  // missing. Here and below, `counts` holds what the parts of the loop have counted since this
  // process began; it is added to the ledger's own figures.
  TimeSplit spent(const WorkerFigures& counts) const;

  // All figures up to now. Waits for the GPU.
  WorkerFigures figures(const WorkerFigures& counts, double trained_parameters);

  // Saves all figures up to now, or continues from saved ones.
  void archive(state::Archive& archive, const WorkerFigures& counts);
  // Counts seconds in which this worker was idle as waiting for others.
  void add_waiting(double seconds) {
    watch_ = Stopwatch(watch_.seconds() + seconds);
    paused_seconds_ -= seconds;
  }
  // Takes over the mean traffic of the workers that saved these states.
  void average_traffic(std::vector<state::State>& states);

 private:
  comm::TrafficMeter meter_;
  Stopwatch watch_;            // since the loop began
  double paused_seconds_ = 0;  // of communication outside the training
  // Pauses and the bytes by phase; also what the parts of the loop had counted before a resume.
  WorkerFigures own_;
  std::optional<double> trained_seconds_;  // once the training has ended
};

}  // namespace abtrain::train
