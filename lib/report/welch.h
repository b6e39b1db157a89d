// Welch's t test: whether two samples of unequal variances have different means. B. L. Welch, "The
// generalization of Student's problem when several different population variances are involved",
// Biometrika 34, 1947; degrees of freedom of Welch and Satterthwaite.
#pragma once

#include <optional>
#include <vector>

namespace abtrain::report {

// The two-sided probability, 0 to 1, of a difference of the means at least as large as this one if
// the true means were equal. None if a sample has fewer than two values. 1 for equal means; 0 for
// unequal ones if neither sample varies.
std::optional<double> welch_p(const std::vector<double>& a, const std::vector<double>& b);

// The level of the test, and the power for which a visible gap is stated.
inline constexpr double kSignificant = 0.05;
inline constexpr double kPower = 0.8;

// The difference of the means that the two-sided test at 5 % would find in 80 % of comparisons of
// samples of these sizes, if they came from normal populations with the standard deviations of `a`
// and `b`. Follows from the power of the test (J. Cohen, "Statistical power analysis for the
// behavioral sciences", 1988, chapter 2), averaged over the variances that such samples have. None
// if a sample has fewer than two values; 0 if neither varies.
std::optional<double> visible_gap(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace abtrain::report
