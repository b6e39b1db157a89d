#include "linalg/spectrum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace abtrain::linalg {

Spectrum flat_spectrum(std::string name, std::int64_t m, std::int64_t n, std::int64_t grid) {
  return {
      std::move(name), m, n, std::vector<double>(static_cast<std::size_t>(n / grid), 1.0), grid};
}

std::int64_t largest_saving_rank(const Spectrum& s) {
  const std::int64_t rank = (s.m * s.n - 1) / (s.m + s.n);
  return rank - rank % s.grid;
}

std::vector<double> lost_energy(const Spectrum& s) {
  std::vector<double> lost(static_cast<std::size_t>(s.n / s.grid) + 1, 0.0);
  // Relative to the largest, so that no square over- or underflows.
  const double largest = s.singular_values.front();
  if (largest <= 0) {
    return lost;
  }
  for (std::size_t i = std::min(lost.size() - 1, s.singular_values.size()); i-- > 0;) {
    const double value = s.singular_values[i] / largest;
    lost[i] = lost[i + 1] + value * value;
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
