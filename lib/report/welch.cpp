#include "report/welch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "report/compare.h"

namespace abtrain::report {

namespace {

// The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated from its end to
// its front.
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

// The two-sided probability that t is at least this large in magnitude.
double tails(double t_squared, double freedom) {
  return beta_share(freedom / (freedom + t_squared), freedom / 2, 0.5);
}

// The degrees of freedom of Welch and Satterthwaite, from the squared standard errors of two means.
double freedom_of(double error_a, double error_b, double count_a, double count_b) {
  const double error = error_a + error_b;
  return error * error / (error_a * error_a / (count_a - 1) + error_b * error_b / (count_b - 1));
}

// The point between low and high where `is_above`, which changes once, becomes true.
double crossing(double low, double high, const auto& is_above) {
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (is_above(middle) ? high : low) = middle;
  }
  return high;
}

// The critical t of the two-sided test at 5 %, interpolated between degrees of freedom with equally
// spaced inverses.
class Critical {
 public:
  Critical(double least, double most) : most_(1 / least), step_((1 / least - 1 / most) / kSteps) {
    for (int i = 0; i <= kSteps; ++i) {
      const double freedom = 1 / (most_ - i * step_);
      table_[static_cast<std::size_t>(i)] =
          crossing(0, kLargest, [&](double t) { return tails(t * t, freedom) <= kSignificant; });
    }
  }
  double operator()(double freedom) const {
    const double at = step_ > 0 ? std::clamp((most_ - 1 / freedom) / step_, 0.0, kSteps - 1e-9) : 0;
    const auto i = static_cast<std::size_t>(at);
    const double share = at - static_cast<double>(i);
    return (1 - share) * table_[i] + share * table_[i + 1];
  }

 private:
  static constexpr int kSteps = 32;
  static constexpr double kLargest = 20;  // above 12.7, the value for 1 degree
  double most_;
  double step_;
  std::array<double, kSteps + 1> table_{};
};

// A variance that a sample from a normal population with variance 1 may have, and its probability
// up to a factor: the root of variance times degrees of freedom has a chi distribution.
struct Share {
  double variance;
  double weight;
};
std::vector<Share> variances_of(double count) {
  constexpr int kPoints = 60;
  constexpr double kMost = 7;  // standard deviations
  const double freedom = count - 1;
  std::vector<Share> shares;
  for (int i = 0; i < kPoints; ++i) {
    const double sd = (i + 0.5) * (1 + kMost / std::sqrt(2 * freedom)) / kPoints;
    shares.push_back(
        {sd * sd, std::exp((freedom - 1) * std::log(sd) - freedom * (sd * sd - 1) / 2)});
  }
  return shares;
}

}  // namespace

std::optional<double> visible_gap(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) {
    return {};
  }
  const auto count_a = static_cast<double>(a.size());
  const auto count_b = static_cast<double>(b.size());
  const double error_a = error_of(a);
  const double error_b = error_of(b);
  const double error = std::sqrt(error_a + error_b);
  if (!(error > 0)) {
    return 0;
  }
  // The smallest gap that the test finds, in standard errors, for each pair of variances.
  const Critical critical(std::min(count_a, count_b) - 1, count_a + count_b - 2);
  std::vector<Share> limits;
  double total = 0;
  for (const Share& of_a : variances_of(count_a)) {
    for (const Share& of_b : variances_of(count_b)) {
      const double own_a = error_a * of_a.variance;
      const double own_b = error_b * of_b.variance;
      const double freedom = freedom_of(own_a, own_b, count_a, count_b);
      limits.push_back(
          {critical(freedom) * std::sqrt(own_a + own_b) / error, of_a.weight * of_b.weight});
      total += limits.back().weight;
    }
  }
  const auto power = [&](double gap) {
    const auto below = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
    double found = 0;
    for (const Share& limit : limits) {
      found += limit.weight * (below(gap - limit.variance) + below(-gap - limit.variance));
    }
    return found / total;
  };
  constexpr double kMostErrors = 100;
  return error * crossing(0, kMostErrors, [&](double gap) { return power(gap) >= kPower; });
}

std::optional<double> welch_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) {
    return {};
  }
  const double apart = std::abs(mean(a) - mean(b));
  constexpr double kRounding = 1e-12;  // for means that are equal
  if (apart <= kRounding * (std::abs(mean(a)) + std::abs(mean(b)))) {
    return 1;
  }
  const double error_a = error_of(a);
  const double error_b = error_of(b);
  const double error = error_a + error_b;
  if (std::sqrt(error) <= kRounding * apart) {
    return 0;
  }
  const double freedom =
      freedom_of(error_a, error_b, static_cast<double>(a.size()), static_cast<double>(b.size()));
  return tails(apart * apart / error, freedom);
}

}  // namespace abtrain::report
