// Rules that choose the rank of each factored layer from its singular values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::linalg {

// sigma:    r = #{ s_i > cut * s_1 }, strict
// energy:   smallest r with sum_{i<=r} s_i^2 >= keep * sum s_i^2
// fixed:    r = min(rank, n)
// fraction: r = ceil(fraction * n)
// ratio:    r = max(1, floor(m*n/(m+n)/ratio))
// budget:   ranks that minimise the sum over layers of the relative squared
//           error under a parameter budget of the whole model
enum class RankRuleName { Sigma, Energy, Fixed, Fraction, Ratio, Budget };

struct RankRule {
  RankRuleName rule = RankRuleName::Sigma;
  double cut = 0.15;
  double keep = 0.9;
  std::int64_t rank = 48;
  double fraction = 0.1;
  double ratio = 10;
};

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

// Rank 0 means that the layer stays dense (factors would save nothing: r >=
// m*n/(m+n)).
struct RankChoice {
  std::int64_t rank = 0;
  double energy = 1;  // kept share of sum s_i^2
  // False if the partial spectrum does not decide the rank; `rank` is then the
  // least number of values that the choice needs.
  bool decided = true;
};

// True if the rule needs the spectra of all layers together (budget).
bool is_global(RankRuleName rule);

// Chooses for one layer by a local rule. A decided choice equals that of the
// whole spectrum.
RankChoice choose_rank(const RankRule& rule, const Spectrum& spectrum);

// Chooses for all layers. `other_parameters` counts the parameters that are
// never factored; budget means (sum of m*n + other) / (stored parameters +
// other) >= rule.ratio. Throws Error(Config) when even rank 1 everywhere does
// not reach the ratio. If all layers are decided, the choices equal those of
// the whole spectra.
std::vector<RankChoice> choose_ranks(
    const RankRule& rule,
    const std::vector<Spectrum>& spectra,
    std::int64_t other_parameters);

// The table of a rule's keys, ranges and help (base/options.h).
Fields fields_of(RankRule& rule);

}  // namespace abtrain::linalg
