// What training costs a worker: the time on the clock of its loop, the bytes it
// sends, and where both went. A ledger is saved with the run and goes on after
// a resume. Seconds are wall time.
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

// Cost of averaging gradients, in seconds: encode and decode are part of
// `compute`, collective is part of `communication`. Also its errors.
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
    double communicated;  // seconds, before it
  };

  // For the worker's communicators (comm::metered()).
  comm::TrafficMeter& meter() {
    return meter_;
  }
  // Starts the clock; communication up to now is not part of the training.
  void start();
  // What the clock shows, pauses included.
  double seconds() const {
    return watch_.seconds();
  }
  double pause_seconds() const {
    return own_.seconds.evaluate + own_.seconds.checkpoint;
  }
  // Without pauses; constant once the training has ended.
  double train_seconds() const {
    return trained_seconds_.value_or(seconds() - pause_seconds());
  }
  // Ends the training. Evaluations and checkpoints are still counted after it.
  void end() {
    trained_seconds_ = train_seconds();
  }

  // Runs the body and adds the bytes that it sends to those of a phase.
  template <class Body>
  void count(double TrafficSplit::*phase, const Body& body) {
    const auto before = static_cast<double>(meter_.training_bytes());
    body();
    own_.traffic.*phase += static_cast<double>(meter_.training_bytes()) - before;
  }
  // An evaluation or a checkpoint, whose time and collectives are not part of
  // the training. `account`: where its seconds go. Both wait for the GPU.
  Pause begin_pause();
  void end_pause(const Pause& pause, double TimeSplit::*account);

  // Where the time has gone until now, while training goes on. On a GPU the last
  // collectives may be missing. Here and below, `counts` is what the parts of the
  // loop have counted themselves since this process began; it is added to the
  // ledger's own figures.
  TimeSplit spent(const WorkerFigures& counts) const;

  // All up to now. Waits for the GPU.
  WorkerFigures figures(const WorkerFigures& counts, double trained_parameters);

  // Saves all up to now, or continues what was saved.
  void archive(state::Archive& archive, const WorkerFigures& counts);
  // Counts seconds in which this worker did nothing as waiting for others.
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
  // Pauses and the bytes by phase; the figures of the parts before a resume.
  WorkerFigures own_;
  std::optional<double> trained_seconds_;  // once the training has ended
};

}  // namespace abtrain::train
