// The singular values of a layer, and the energy (sum of squares) that is lost when small ones are
// cut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::linalg {

// The singular values of one m x n matrix, m >= n: descending, at least one of
// them (zeros allowed). Those that are not listed are zero.
//
// In a grid of k x k equal blocks, all blocks are cut alike. There are n / k values; the t-th is
// the root of the sum of the squares of the blocks' t-th values. Rank r keeps r / k values of each
// block.
struct Spectrum {
  std::string name;  // the layer's, for messages
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::vector<double> singular_values;
  std::int64_t grid = 1;  // k
};

// A spectrum of equal values.
Spectrum flat_spectrum(std::string name, std::int64_t m, std::int64_t n, std::int64_t grid);

// The largest rank, a multiple of the grid, that still saves something: r * (m
// + n) < m * n. May be 0.
std::int64_t largest_saving_rank(const Spectrum& spectrum);

// Returns, for i = 0 .. n / k, the share of sum s_i^2 that is lost if only the first i values are
// kept.
std::vector<double> lost_energy(const Spectrum& spectrum);

// Throws Error(Config) unless m >= n >= 1, and Error(Diverged) unless the
// values are finite.
void check(const Spectrum& spectrum);

}  // namespace abtrain::linalg
