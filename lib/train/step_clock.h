// Estimates the number of steps of a "run by the clock", which train.seconds limits. Worker 0
// estimates from its own clock, after steps that end with a collective of all workers anyway. The
// other workers adopt its estimate (comm::Control).
//
//   clock.begin(t);                      // before the first step; t: steps done earlier
//   clock.mark(t, seconds);              // after each step
//   if (clock.is_due(t, meets, length)) {
//     StepClock::Estimate e = clock.estimate(t, seconds, end);
//     control.share(rank, &e, sizeof(e), check);
//     clock.agree(e), length.plan(t, e.steps);
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "base/duration.h"

namespace abtrain::train {

class StepClock {
 public:
  struct Estimate {
    std::int64_t steps = 0;  // estimated length of the whole run
    std::int64_t next = 0;   // steps done when the next estimate is due
  };

  // `seconds`: the training time of the run.
  explicit StepClock(double seconds) : seconds_(seconds) {}

  void begin(std::int64_t t);
  // Call after each step: the run has trained for `seconds` in its first t steps.
  void mark(std::int64_t t, double seconds);
  // True if the workers must agree on an estimate after t steps; the result is the same on all of
  // them. `meets`: step t ends with a collective of all workers anyway. In the first steps, and
  // once an estimate has been due for long (1/16 of the run or, if less, a quarter of the steps
  // left), they agree without such a collective: all wait for worker 0.
  bool is_due(std::int64_t t, bool meets, const RunLength& length) const;
  // The time that the end of a run takes besides its steps: `seconds`, plus the time of `steps`
  // steps.
  struct End {
    double seconds = 0;
    double steps = 0;
  };
  // Estimates from the pace of the later half of the steps so far, since the first steps of a run
  // are slow. `seconds`: trained so far. Estimates become more frequent toward the end.
  Estimate estimate(std::int64_t t, double seconds, const End& end);
  void agree(const Estimate& estimate) {
    next_ = estimate.next;
  }

 private:
  struct Mark {
    std::int64_t t = 0;
    double seconds = 0;
  };

  double seconds_;
  std::int64_t begun_ = 0;
  std::int64_t next_ = 0;
  std::vector<Mark> marks_;  // after the first step, then at each estimate
};

// A recurring event, such as an evaluation every 25 %. In a run by the clock, a percentage is a
// share of its time; all other durations are numbers of steps.
class Recurring {
 public:
  Recurring(const Duration& every, const RunLength& length);
  // Steps between two events, at least one; 0: never.
  std::int64_t steps() const {
    return steps_;
  }
  // Call when the run begins or continues after t steps.
  void begin(std::int64_t t, const RunLength& length);
  // Call after each step.
  bool is_due(std::int64_t t, const RunLength& length);

 private:
  std::int64_t times_at(std::int64_t t, const RunLength& length) const;

  Duration every_;
  std::int64_t steps_;
  bool by_share_;
  std::int64_t times_ = 0;  // how often it was due, if by_share_
};

}  // namespace abtrain::train
