#include "base/interval.h"

#include <cmath>

#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

namespace {

// Prints 1e38, where print_number() prints 1.0e+38.
std::string bound(double x) {
  return replaced(replaced(print_number(x), ".0e+", "e"), "e+", "e");
}

}  // namespace

bool Interval::contains(double x) const {
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string Interval::text() const {
  if (std::isfinite(low) && std::isfinite(high)) {
    return formatted(
        "{}{}{}{}", low_open ? " above " : " from ", bound(low),
        low_open ? (high_open ? " and below " : " and at most ")
                 : (high_open ? " to below " : " to "),
        bound(high));
  }
  return "";
}

}  // namespace abtrain
