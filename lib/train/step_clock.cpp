#include "train/step_clock.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"

namespace abtrain::train {

namespace {

// After each of these first steps, all workers wait for worker 0.
constexpr std::int64_t kFirstSteps = 8;
// Number of estimates in a run, besides those at its beginning and its end.
constexpr std::int64_t kEstimates = 64;
constexpr std::int64_t kLeastMeetings = 16;

}  // namespace

void StepClock::begin(std::int64_t t) {
  begun_ = t;
  next_ = t + 2;
  marks_.clear();
}

void StepClock::mark(std::int64_t t, double seconds) {
  if (marks_.empty()) {
    marks_.push_back({t, seconds});
  }
}

bool StepClock::is_due(std::int64_t t, bool meets, const RunLength& length) const {
  const std::int64_t patience = std::min(length.steps / kLeastMeetings, (length.steps - t) / 4);
  return t >= next_ && (meets || t - begun_ <= kFirstSteps || t - next_ >= patience);
}

StepClock::Estimate StepClock::estimate(std::int64_t t, double seconds, const End& end) {
  Mark since = marks_.front();
  for (const Mark& mark : marks_) {
    if (2 * (mark.t - begun_) <= t - begun_) {
      since = mark;
    }
  }
  marks_.push_back({t, seconds});
  const double each = (seconds - since.seconds) / static_cast<double>(t - since.t);
  const double left = (seconds_ - seconds - end.seconds) / std::max(each, 1e-9) - end.steps;
  const std::int64_t more = std::llround(std::clamp(left, 0.0, kMaxSteps - static_cast<double>(t)));
  const std::int64_t wait =
      std::min({t - begun_, more / 4, std::max<std::int64_t>(1, (t + more) / kEstimates)});
  return {t + more, t + std::max<std::int64_t>(1, wait)};
}

Recurring::Recurring(const Duration& every, const RunLength& length)
    : every_(every),
      steps_(every.value > 0 ? std::max<std::int64_t>(1, every.in_steps(length)) : 0),
      by_share_(length.by_clock && every.unit == Duration::Unit::Percent && every.value > 0) {}

std::int64_t Recurring::times_at(std::int64_t t, const RunLength& length) const {
  return static_cast<std::int64_t>(100 * length.share_at(t) / every_.value);
}

void Recurring::begin(std::int64_t t, const RunLength& length) {
  if (by_share_) {
    times_ = times_at(t, length);
  }
}

bool Recurring::is_due(std::int64_t t, const RunLength& length) {
  if (!by_share_) {
    return steps_ > 0 && t % steps_ == 0;
  }
  const std::int64_t times = times_at(t, length);
  const bool is_due = times > times_;
  times_ = std::max(times_, times);
  return is_due;
}

}  // namespace abtrain::train
