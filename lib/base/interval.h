// The range that a number in the configuration must lie in.
#pragma once

#include <limits>
#include <string>

namespace abtrain {

struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool contains(double x) const;
  std::string text() const;  // " from 0 to 1"; "" unless both limits are finite
};
// kMaxSteps: the longest run, and the longest interval between two events of a run, in steps.
// kLargest: the largest learning rate or other factor, about the limit of fp32.
constexpr double kMaxSteps = 1e8;
constexpr double kLargest = 1e38;

constexpr Interval between(double low, double high) {
  return {low, high};
}
constexpr Interval from_to_below(double low, double high) {
  return {low, high, false, true};
}
constexpr Interval above_to(double low, double high) {
  return {low, high, true};
}

}  // namespace abtrain
