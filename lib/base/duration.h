// A length of training in steps, in epochs, or as a percentage of the run:
// `110`, `2 epochs`, `5 %`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace abtrain {

// The length of a run. In a run limited by time, the number of steps is an estimate that all
// workers update now and then (train/step_clock.h).
struct RunLength {
  std::int64_t steps_per_epoch = 0;
  std::int64_t steps = 0;
  bool by_clock = false;
  // Steps done at the last estimate, and the share of the run done by then.
  std::int64_t planned_at = 0;
  double share_then = 0;

  // The position, from 0 to `steps`, of step t in schedules: t itself until an estimate changes.
  // Then the remaining steps are spread evenly over the remaining positions, so that schedules
  // continue without a jump and end with the run.
  double at(std::int64_t t) const {
    if (share_then == 0) {
      return static_cast<double>(t);
    }
    const auto left = static_cast<double>(std::max<std::int64_t>(1, steps - planned_at));
    const double rest = static_cast<double>(t - planned_at) / left;
    const double share = share_then + (1 - share_then) * rest;
    return std::clamp(share, 0.0, 1.0) * static_cast<double>(steps);
  }
  double share_at(std::int64_t t) const {
    return at(t) / static_cast<double>(steps);
  }
  // Adopts a new estimate, made after t steps, of the run's total number of steps.
  void plan(std::int64_t t, std::int64_t estimate) {
    // Early estimates are simply replaced: they are rough, and only few steps have used them.
    constexpr double kEarly = 0.05;
    const double share = share_at(t);
    const bool is_early = share < kEarly && 20 * t < estimate;
    planned_at = is_early ? 0 : t;
    share_then = is_early ? 0 : share;
    steps = estimate;
  }
};

struct Duration {
  enum class Unit { Steps, Epochs, Percent };
  double value = 0;
  Unit unit = Unit::Steps;

  static Duration steps(double n) {
    return {n, Unit::Steps};
  }
  static Duration epochs(double n) {
    return {n, Unit::Epochs};
  }
  static Duration percent(double n) {
    return {n, Unit::Percent};
  }
  // Rounded to whole steps and capped at 1e12, which is longer than any run and
  // still safe to multiply.
  std::int64_t in_steps(const RunLength& run) const {
    constexpr double kForever = 1e12;
    double steps = value;
    if (unit == Unit::Epochs) {
      steps *= static_cast<double>(run.steps_per_epoch);
    } else if (unit == Unit::Percent) {
      steps = steps * static_cast<double>(run.steps) / 100;
    }
    return std::llround(std::min(steps, kForever));
  }
};

}  // namespace abtrain
