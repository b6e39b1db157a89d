// Figures that a plan can only bound, because they grow with ranks that depend on the weights'
// singular values (spectra).
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "base/text.h"

namespace abtrain::plan {

// Both are equal if the figure is known.
struct Bounds {
  double least = 0;
  double most = 0;
};

// The bounds of a figure over all sizes that the model may have (possible_sizes.h), at least
// one. `figure`: a function or a pointer to a member.
Bounds bounds_of(const auto& ends, auto figure) {
  const double first = static_cast<double>(std::invoke(figure, *std::begin(ends)));
  Bounds bounds{first, first};
  for (const auto& end : ends) {
    const auto value = static_cast<double>(std::invoke(figure, end));
    bounds.least = std::min(bounds.least, value);
    bounds.most = std::max(bounds.most, value);
  }
  return bounds;
}

// "1.2 MB", or "between 1.2 MB and 3.4 MB". `text`: formats one value.
std::string between(const Bounds& bounds, const auto& text) {
  const std::string least = text(bounds.least);
  const std::string most = text(bounds.most);
  return least == most ? least : formatted("between {} and {}", least, most);
}

}  // namespace abtrain::plan
