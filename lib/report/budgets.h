// Finds the best settings (compare.h) on one data set for each budget of bytes and of parameters.
// verdict.h puts the result into words.
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
  // The quality of a run when it had sent `bytes` per worker.
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
  double seconds = 0;                            // of training; on the given link, if any
  std::vector<std::vector<Waypoint>> ways = {};  // evaluations of each run, bytes ascending
  double usual_spread = 0;     // usual standard deviation over the seeds on these data
  bool is_on_its_way = false;  // the values are from within(), before the end
};

// The contender as if it had stopped at the last evaluations within the budget; nullopt if a run
// has no evaluation within it.
std::optional<Contender> within(const Contender& one, double bytes);

std::vector<Contender> contenders(
    const std::vector<Setting>& settings, const std::vector<std::size_t>& members);

// True if `a` has a higher mean quality than `b`, and the seeds separate the two: the difference is
// significant at 5 % (welch.h), or `b` is far below `a`. The latter is for few seeds that spread
// widely, with which Welch's test cannot decide: all runs of b are worse than all runs of a, and
// the means differ by more than a point (1 % of the bits per byte) and by more than ten usual
// spreads. If a or b has a single run, the means alone decide.
bool is_better(const Contender& a, const Contender& b);

// The winner for budgets of `bytes` or more, up to the next Answer. A setting ties with the winner
// if the seeds separate neither this setting nor any better one from the winner.
struct Answer {
  double bytes = 0;                      // the budget, sent per worker
  std::vector<std::size_t> first = {};   // the winner, then those that tie with it
  std::optional<std::size_t> next = {};  // the best setting that does not win or tie
  std::vector<Contender> at = {};        // all contenders, with their values within the budget
};

// The winner if bytes cost nothing.
Answer winner_of(const std::vector<Contender>& all);

struct SizeBudget {
  std::optional<double> parameters;  // the largest number allowed; none: any number
  std::vector<Answer> answers;       // bytes ascending; each differs from the one before
};

// The winners for each budget of parameters and, within it, of bytes. The smallest budget of bytes
// is the total of the cheapest setting; a setting that sent more competes with the quality that it
// had reached within the budget. Sizes within 2 %, and bytes within 2 %, count as one budget.
// Budgets ascend; one with the same answers as the next smaller one is left out.
std::vector<SizeBudget> size_budgets(const std::vector<Contender>& all);

// For each contender, the best one that dominates it: with no lower mean quality (a tie does not
// prove that it is as good), no more bytes, parameters (to within 2 %) and seconds (10 %), and
// better in at least one of the four.
std::vector<std::optional<std::size_t>> dominators(const std::vector<Contender>& all);

inline constexpr double kSameSize = 1.02;
inline constexpr double kSameBytes = 1.02;
inline constexpr double kSameSeconds = 1.1;

}  // namespace abtrain::report
