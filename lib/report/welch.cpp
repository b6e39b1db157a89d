#include "report/welch.h"

#include <cmath>

#include "report/compare.h"

namespace abtrain::report {

namespace {

// The continued fraction of the incomplete beta function (DLMF 8.17.22), from
// its end to its front.
double beta_fraction(double x, double a, double b) {
  constexpr int kTerms = 400;
  double value = 1;
  for (int i = kTerms; i > 0; --i) {
    const int m = i / 2;
    const double up = i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                 : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    value = 1 + up / value;
  }
  return value;
}

// The regularized incomplete beta function I_x(a, b), 0 <= x <= 1.
double beta_share(double x, double a, double b) {
  if (x <= 0 || x >= 1) {
    return x <= 0 ? 0 : 1;
  }
  // The fraction converges fast below the mean.
  if (x > (a + 1) / (a + b + 2)) {
    return 1 - beta_share(1 - x, b, a);
  }
  const double log_front =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(log_front) / a / beta_fraction(x, a, b);
}

// The squared standard error of the mean.
double error_of(const std::vector<double>& values) {
  return std::pow(*standard_deviation(values), 2) / static_cast<double>(values.size());
}

}  // namespace

std::optional<double> welch_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) {
    return {};
  }
  const double apart = std::abs(mean(a) - mean(b));
  constexpr double kRounding = 1e-12;  // of means that are equal
  if (apart <= kRounding * (std::abs(mean(a)) + std::abs(mean(b)))) {
    return 1;
  }
  const double error_a = error_of(a);
  const double error_b = error_of(b);
  const double error = error_a + error_b;
  if (std::sqrt(error) <= kRounding * apart) {
    return 0;
  }
  const double freedom = error * error /
                         (error_a * error_a / static_cast<double>(a.size() - 1) +
                          error_b * error_b / static_cast<double>(b.size() - 1));
  const double t_squared = apart * apart / error;
  return beta_share(freedom / (freedom + t_squared), freedom / 2, 0.5);
}

}  // namespace abtrain::report
