// The winners on one data set within budgets of bytes and parameters. verdict.h puts them into
// words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// A setting with at least one finished run and no diverged one. Values are means over the finished
// runs.
struct Contender {
  // The quality that a run had reached when it had sent so many bytes.
  struct Waypoint {
    double bytes = 0;
    double quality = 0;
  };
  std::string name;  // safe to show
  bool is_ab = false;
  WhichScore score = &Score::accuracy;
  std::vector<double> qualities;                 // of each run, as Score::quality()
  double quality = 0;                            // their mean
  std::optional<double> parameters;              // stored, of the final model
  double bytes = 0;                              // sent per worker
  double seconds = 0;                            // of training; over a link if one was given
  std::vector<std::vector<Waypoint>> ways = {};  // of each run, bytes ascending
  double usual_spread = 0;     // of a setting's seeds on these data, as a standard deviation
  bool is_on_its_way = false;  // the values are from within(), before the end
};

// The contender as if it had stopped at the last evaluations within the budget; nullopt if a run
// has no evaluation within it.
std::optional<Contender> within(const Contender& one, double bytes);

std::vector<Contender> contenders(
    const std::vector<Setting>& settings, const std::vector<std::size_t>& members);

// Whether the mean quality of a is higher than that of b, and the seeds separate them: the
// difference is significant at 5 % (welch.h), or b is far below. Welch's test cannot decide between
// few seeds that spread widely. b is far below a if all its runs are worse than those of a, and the
// means differ by more than a point (1 % of the bits per byte) and ten usual spreads. If either has
// a single run, the means decide.
bool is_better(const Contender& a, const Contender& b);

// The winner from so many bytes on. A setting ties with the winner if the seeds do not separate
// them, and if no better setting is separated from the winner.
struct Answer {
  double bytes = 0;                      // the budget, sent per worker
  std::vector<std::size_t> first = {};   // the winner, then those that tie with it
  std::optional<std::size_t> next = {};  // the best of the others within budget
  std::vector<Contender> at = {};        // all contenders, with their values within the budget
};

// The winner if bytes cost nothing.
Answer winner_of(const std::vector<Contender>& all);

struct SizeBudget {
  std::optional<double> parameters;  // the largest number allowed; none: any number
  std::vector<Answer> answers;       // bytes ascending; each differs from the one before
};

// The smallest budget of bytes is what the cheapest setting sent in all. A setting that sends more
// competes with what it had reached within the budget. Sizes within 2 % count as one budget, and so
// do bytes. Budgets ascend; a budget with the same answers as the next smaller one is left out.
std::vector<SizeBudget> size_budgets(const std::vector<Contender>& all);

// For each contender, the best one that dominates it: one with a mean quality that is no lower (a
// tie is no proof of being as good), that costs no more bytes, parameters (2 %) and seconds (10 %),
// and that is better in one of the four.
std::vector<std::optional<std::size_t>> dominators(const std::vector<Contender>& all);

// Tolerances: 2 % of parameters and bytes, 10 % of seconds.
inline constexpr double kSameSize = 1.02;
inline constexpr double kSameBytes = 1.02;
inline constexpr double kSameSeconds = 1.1;

}  // namespace abtrain::report
