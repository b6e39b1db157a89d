#include "base/interval.h"

#include <cmath>
#include <string_view>

#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

namespace {

// A bound as people write it: 1e38.
std::string bound(double x) {
  std::string text = print_number(x);
  for (const char* noise : {".0e+", "e+"}) {
    const std::size_t at = text.find(noise);
    if (at != std::string::npos) {
      text.replace(at, std::string_view(noise).size(), "e");
    }
  }
  return text;
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
