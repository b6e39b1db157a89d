// A length of training in steps, in epochs, or as a percentage of the run:
// `110`, `2 epochs`, `5 %`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace abtrain {

// The length of a run.
struct RunLength {
  std::int64_t steps_per_epoch = 0;
  std::int64_t steps = 0;
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
