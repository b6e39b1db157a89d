#include "base/interval.h"

#include <cmath>

#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

bool Interval::contains(double x) const {
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string Interval::text() const {
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (has_low && has_high) {
    return str(
        low_open ? " above " : " from ",
        print_number(low),
        low_open ? (high_open ? " and below " : " and at most ")
                 : (high_open ? " to below " : " to "),
        print_number(high));
  }
  if (has_low) {
    return (low_open ? " above " : " of at least ") + print_number(low);
  }
  return "";
}

Interval any() {
  return {};
}
Interval at_least(double low) {
  Interval out;
  out.low = low;
  return out;
}
Interval above(double low) {
  Interval out = at_least(low);
  out.low_open = true;
  return out;
}
Interval between(double low, double high) {
  Interval out = at_least(low);
  out.high = high;
  return out;
}
Interval from_to_below(double low, double high) {
  Interval out = between(low, high);
  out.high_open = true;
  return out;
}

Interval above_to(double low, double high) {
  Interval out = between(low, high);
  out.low_open = true;
  return out;
}

}  // namespace abtrain
