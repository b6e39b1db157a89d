// The winners of one data set within budgets of bytes and parameters; what
// verdict.h puts into words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// A setting that has a finished run, and none that has diverged: means over the finished ones.
struct Contender {
  // What a run had reached when it had sent so many bytes.
  struct Waypoint {
    double bytes = 0;
    double quality = 0;
  };
  std::string name;  // safe to show
  bool is_ab = false;
  WhichScore score = &Score::accuracy;
  std::vector<double> qualities;                 // of its runs, as Score::quality()
  double quality = 0;                            // their mean
  std::optional<double> parameters;              // stored, of the final model
  double bytes = 0;                              // sent per worker
  double seconds = 0;                            // of training, over a link where one was asked for
  std::vector<std::vector<Waypoint>> ways = {};  // of its runs, bytes ascending
  double usual_spread = 0;     // of the seeds of a setting of these data, as a standard deviation
  bool is_on_its_way = false;  // its figures are those of within(), before its end
};

// The contender if it had stopped at the last evaluations within the budget; none if a run has
// none.
std::optional<Contender> within(const Contender& one, double bytes);

std::vector<Contender> contenders(
    const std::vector<Setting>& settings, const std::vector<std::size_t>& members);

// Whether the mean quality of a is higher than that of b, and the seeds separate them: the
// difference is significant at 5 % (welch.h), or b is far below. Few seeds that spread widely leave
// any difference open to Welch's test; far below is a setting if all its runs are below those of
// the other, by a point (1 % of the bits per byte) and by ten usual spreads. If either has a single
// run, the means decide.
bool is_better(const Contender& a, const Contender& b);

// Who wins from so many bytes on. A setting ties with the winner if their seeds do not separate
// them, and if no better setting is separated from the winner.
struct Answer {
  double bytes = 0;                      // the budget, sent per worker
  std::vector<std::size_t> first = {};   // the winner, then those that tie with it
  std::optional<std::size_t> next = {};  // the best of the others within budget
  std::vector<Contender> at = {};        // all contenders, as the budget finds them
};

// Who wins if bytes cost nothing.
Answer winner_of(const std::vector<Contender>& all);

struct SizeBudget {
  std::optional<double> parameters;  // at most so many; none: any number
  std::vector<Answer> answers;       // bytes ascending; each differs from before
};

// Budgets of bytes begin with what the cheapest setting sent in all. A setting that sends more
// competes with what it had reached within the budget. Sizes within 2 % are one budget, and so are
// bytes. Ascending; a budget whose answers are those of the next smaller one is left out.
std::vector<SizeBudget> size_budgets(const std::vector<Contender>& all);

// For each contender the best of those that dominate it: their mean quality is
// no lower, since a tie is no proof of being as good, they cost no more bytes,
// parameters (2 %) and seconds (10 %), and they are better in one of the four.
std::vector<std::optional<std::size_t>> dominators(const std::vector<Contender>& all);

// More than by the tolerance: 2 % of parameters and bytes, 10 % of seconds.
inline constexpr double kSameSize = 1.02;
inline constexpr double kSameBytes = 1.02;
inline constexpr double kSameSeconds = 1.1;

}  // namespace abtrain::report
