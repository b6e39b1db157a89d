// A length of training, in steps or in epochs: `every: 110`, `2 epochs`.
#pragma once

#include <cmath>
#include <cstdint>

namespace abtrain {

struct Duration {
  enum class Unit { Steps, Epochs };
  double value = 0;
  Unit unit = Unit::Steps;

  static Duration steps(double n) {
    return {n, Unit::Steps};
  }
  static Duration epochs(double n) {
    return {n, Unit::Epochs};
  }
  // Rounded to whole steps.
  std::int64_t in_steps(std::int64_t steps_per_epoch) const {
    return std::llround(
        unit == Unit::Steps ? value
                            : value * static_cast<double>(steps_per_epoch));
  }
};

}  // namespace abtrain
