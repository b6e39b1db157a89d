#include "linalg/rank_budget.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace abtrain::linalg {
namespace {

// One layer under the budget rule. Its states are the ranks from least_ to top_, counted in units
// of multiple_, and top_ + 1, which stands for dense. A higher state costs more parameters and has
// a smaller error.
class Ladder {
 public:
  // The least rank keeps at most `share` of the layer's parameters, unless it is one unit.
  Ladder(const Spectrum& s, std::int64_t multiple, double share)
      : multiple_(std::lcm(multiple, s.grid)),
        grid_(s.grid),
        step_(static_cast<double>(multiple_ * (s.m + s.n))),
        dense_(static_cast<double>(s.m) * static_cast<double>(s.n)),
        top_(largest_saving_rank(s) / multiple_),
        least_(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(share * dense_ / step_), 1, std::max<std::int64_t>(1, top_))),
        lost_(lost_energy(s)) {
    hull_end_ = std::max(top_, least_);
    while (hull_end_ > least_ &&
           slope(hull_end_ - 1, hull_end_) < slope(hull_end_, dense_state())) {
      --hull_end_;
    }
  }

  std::int64_t least() const {
    return least_;
  }
  std::int64_t dense_state() const {
    return top_ + 1;
  }
  std::int64_t rank(std::int64_t state) const {
    return state * multiple_;
  }
  double cost(std::int64_t state) const {
    return state > top_ ? dense_ : static_cast<double>(state) * step_;
  }
  double error(std::int64_t state) const {
    return state > top_ ? 0 : lost_[rank(state) / grid_];
  }
  RankChoice choice(std::int64_t state) const {
    return state > top_ ? RankChoice{0, 1} : RankChoice{rank(state), 1 - error(state)};
  }
  // Error removed per parameter between two states.
  double slope(std::int64_t from, std::int64_t to) const {
    return (error(from) - error(to)) / (cost(to) - cost(from));
  }
  // The next state on the lower convex hull of (cost, error). Ranks alone are convex; the step to
  // dense starts at hull_end_ and skips the ranks above it.
  std::int64_t next(std::int64_t state) const {
    return state < hull_end_ ? state + 1 : dense_state();
  }

 private:
  std::int64_t multiple_;
  std::int64_t grid_;
  double step_;
  double dense_;
  std::int64_t top_;
  std::int64_t least_;
  std::int64_t hull_end_ = 1;
  std::vector<double> lost_;
};

double dense_numel(const std::vector<Spectrum>& spectra) {
  double numel = 0;
  for (const Spectrum& s : spectra) {
    numel += static_cast<double>(s.m) * static_cast<double>(s.n);
  }
  return numel;
}

class Budget {
 public:
  Budget(const RankRule& rule, const std::vector<Spectrum>& spectra, double budget)
      : left_(budget) {
    const double share = rule.floor * budget / dense_numel(spectra);
    for (const auto& s : spectra) {
      check(s);
      const Ladder& ladder = ladders_.emplace_back(s, rule.multiple.value_or(1), share);
      state_.push_back(ladder.least());
      left_ -= ladder.cost(ladder.least());
    }
  }

  double left() const {
    return left_;
  }

  // Climbs greedily, and again with each layer made dense first: a climb may miss this jump when
  // too little of the budget is left. Improves the best result by fill() and exchange().
  std::vector<RankChoice> solve() {
    const Budget start = *this;
    climb();
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      Budget other = start;
      other.move(l, ladders_[l].dense_state());
      if (other.left_ < 0) {
        continue;
      }
      other.climb();
      if (other.error() < error()) {
        state_ = other.state_;
        left_ = other.left_;
      }
    }
    while (fill() || exchange()) {
    }
    std::vector<RankChoice> choices;
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      choices.push_back(ladders_[l].choice(state_[l]));
    }
    return choices;
  }

 private:
  void move(std::size_t l, std::int64_t state) {
    left_ -= ladders_[l].cost(state) - ladders_[l].cost(state_[l]);
    state_[l] = state;
  }

  double error() const {
    double sum = 0;
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      sum += ladders_[l].error(state_[l]);
    }
    return sum;
  }

  // Climbs along the hulls, the step with the best gain per parameter first, until no step fits the
  // budget.
  void climb() {
    for (;;) {
      std::size_t best = ladders_.size();
      double best_slope = 0;
      for (std::size_t l = 0; l < ladders_.size(); ++l) {
        const auto& ladder = ladders_[l];
        const auto from = state_[l];
        if (from >= ladder.dense_state()) {
          continue;
        }
        const auto to = ladder.next(from);
        if (ladder.cost(to) - ladder.cost(from) <= left_ && ladder.slope(from, to) > best_slope) {
          best_slope = ladder.slope(from, to);
          best = l;
        }
      }
      if (best == ladders_.size()) {
        return;
      }
      move(best, ladders_[best].next(state_[best]));
    }
  }

  // Finds the move of one layer, but not of `except`, that removes the most error with `left` more
  // parameters. Ignores the hulls.
  struct Move {
    std::size_t layer = 0;
    std::int64_t state = 0;
    double gain = 0;
  };
  Move best_move(double left, std::size_t except) const {
    Move best;
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      if (l == except) {
        continue;
      }
      const auto& ladder = ladders_[l];
      const double limit = left + ladder.cost(state_[l]);
      auto to = ladder.dense_state();
      if (ladder.cost(to) > limit) {
        to = std::min(to - 1, static_cast<std::int64_t>(limit / ladder.cost(1)));
      }
      if (to <= state_[l]) {
        continue;
      }
      const double gain = ladder.error(state_[l]) - ladder.error(to);
      if (gain > best.gain) {
        best = {l, to, gain};
      }
    }
    return best;
  }

  bool fill() {
    const Move best = best_move(left_, ladders_.size());
    if (best.gain > 0) {
      move(best.layer, best.state);
    }
    return best.gain > 0;
  }

  // Lowers one layer so that another layer can rise, for the pair with the best net gain. Returns
  // false if no pair gains.
  bool exchange() {
    // Only a clear win counts, so that rounding errors cannot make solve() loop forever.
    double best_gain = 1e-12;
    std::size_t down = 0;
    std::int64_t down_to = 0;
    Move up;
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      const auto& ladder = ladders_[l];
      for (std::int64_t to = ladder.least(); to < state_[l]; ++to) {
        const double freed = ladder.cost(state_[l]) - ladder.cost(to);
        const double lost = ladder.error(to) - ladder.error(state_[l]);
        const Move other = best_move(left_ + freed, l);
        if (other.gain - lost > best_gain) {
          best_gain = other.gain - lost;
          down = l;
          down_to = to;
          up = other;
        }
      }
    }
    if (up.gain > 0) {
      move(down, down_to);
      move(up.layer, up.state);
    }
    return up.gain > 0;
  }

  std::vector<Ladder> ladders_;
  std::vector<std::int64_t> state_;
  double left_;
};

}  // namespace

std::vector<RankChoice> budget_ranks(
    const RankRule& rule, const std::vector<Spectrum>& spectra, std::int64_t other_parameters) {
  const auto other = static_cast<double>(other_parameters);
  const double dense = dense_numel(spectra) + other;
  const double wanted = dense / rule.ratio;
  Budget budget(rule, spectra, wanted - other);
  ABT_CHECK(
      budget.left() >= 0, Config,
      "method.rank.ratio: expected at most {:.2f}, the ratio with every factored "
      "layer at its lowest rank; got {}",
      dense / (wanted - budget.left()), rule.ratio);
  return budget.solve();
}

}  // namespace abtrain::linalg
