// A range that a number of the configuration must lie in.
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
  std::string text() const;  // "of at least 1", "from 0 to 1"
};
Interval any();
Interval at_least(double low);
Interval above(double low);
Interval between(double low, double high);
Interval from_to_below(double low, double high);
Interval above_to(double low, double high);

}  // namespace abtrain
