#include "linalg/spectrum.h"

#include <cmath>

#include "base/error.h"

namespace abtrain::linalg {

std::int64_t largest_saving_rank(const Spectrum& s) {
  return (s.m * s.n - 1) / (s.m + s.n);
}

std::vector<double> lost_energy(const Spectrum& s) {
  std::vector<double> lost(static_cast<std::size_t>(s.n) + 1, 0.0);
  const auto known = s.known();
  // Relative to the largest, so that no square over- or underflows.
  const double largest = s.singular_values.front();
  if (largest <= 0) {
    return lost;
  }
  if (!s.is_whole()) {
    const double step = std::pow(std::min(s.rest_bound, s.singular_values.back()) / largest, 2);
    lost[known] = s.rest_energy / largest / largest;
    for (auto r = known; r < s.n; ++r) {
      lost[r + 1] = std::max(0.0, lost[r] - step);
    }
  }
  for (std::int64_t r = known; r-- > 0;) {
    const double value = s.singular_values[r] / largest;
    lost[r] = lost[r + 1] + value * value;
  }
  const double whole = lost[0];
  for (double& value : lost) {
    value /= whole;
  }
  return lost;
}

void check(const Spectrum& s) {
  ABT_CHECK(
      s.m >= s.n && s.n >= 1, Config, "layer '{}': expected a matrix with m >= n >= 1, got {} x {}",
      s.name, s.m, s.n);
  ABT_CHECK(
      !s.singular_values.empty() && std::isfinite(s.singular_values.front()), Diverged,
      "layer '{}': expected finite singular values, got {}", s.name,
      s.singular_values.empty() ? "none" : "a non-finite one");
}

}  // namespace abtrain::linalg
