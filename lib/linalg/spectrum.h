// The singular values of a layer, whole or in part, and the energy that a cut
// loses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::linalg {

// The singular values of one m x n matrix, m >= n: descending, at least one of
// them (zeros allowed). A partial spectrum lists only the first few and what is
// known about the others; without that (products of low rank) the others are
// zero.
struct Spectrum {
  std::string name;  // the layer's, for messages
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::vector<double> singular_values;
  double rest_energy = 0;  // sum of squares of the values that are not listed
  double rest_bound = 0;   // none of them is above this

  std::int64_t known() const {
    return std::min(n, static_cast<std::int64_t>(singular_values.size()));
  }
  bool is_whole() const {
    return known() == n || rest_bound == 0;
  }
};

// The largest rank that still saves something: r * (m + n) < m * n. May be 0.
std::int64_t largest_saving_rank(const Spectrum& spectrum);

// The share of sum s_i^2 that each rank loses: result[r] for r = 0 .. n. Beyond
// the values that are listed, the least that can be lost: as if the others were
// as large as their bound allows.
std::vector<double> lost_energy(const Spectrum& spectrum);

// Throws Error(Config) unless m >= n >= 1, and Error(Diverged) unless the
// values are finite.
void check(const Spectrum& spectrum);

}  // namespace abtrain::linalg
