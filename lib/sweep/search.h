// Searches the best setting of one rival, one coordinate at a time, in rounds of short pilots
// (sweep/halving.h).
//
// Tries the moves of Rival::tune in their order, each from the best setting so far, and starts over
// after the last one. Skips a move that leads to no new configuration, and a move of keys that had
// no effect in two pilots, that is, both results were bit-identical to the result of the setting
// that they started from. A setting with the same result as an earlier setting does not count as
// tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// The assignments of both; if both have a key, `over` decides.
Choice merged(const Choice& base, const Choice& over);

// A pilot that has ended; the quality is -infinity if it diverged.
struct PilotResult {
  double quality = -std::numeric_limits<double>::infinity();
  double loss = 0;
  double seconds = 0;  // of training, on the sweep's link
  double steps_per_second = 0;
};

class Search {
 public:
  // Both arguments must outlive the search.
  Search(const Sweep& sweep, const Rival& rival) : sweep_(&sweep), rival_(&rival) {}

  struct Run {
    std::size_t setting = 0;
    std::int64_t steps = 0;   // of a full-length run
    std::int64_t repeat = 0;  // 0: with the first seed
  };
  // Returns pilots of new settings: at most kAtOnce, and no more than `target` tried settings need.
  // `share`: their length as a share of the full length.
  std::vector<Run> explore(std::size_t target, double share);
  // Returns the pilots that decide between the rival as configured and the best other setting; two
  // seeds each.
  std::vector<Run> decide() const;
  void learn(const std::vector<Run>& runs, const std::vector<PilotResult>& results);
  // The run at full length: the best other setting if it beats the rival as configured by more than
  // the spread of the seeds (pooled standard deviation), else the rival as configured.
  Run chosen() const;

  // The keys of a setting, in addition to the rival's own.
  const Choice& setting(std::size_t index) const {
    return trials_[index].setting;
  }
  std::size_t tried() const;
  std::size_t pilots() const {
    return pilots_;
  }
  double pilot_seconds() const {
    return pilot_seconds_;
  }

  static constexpr std::size_t kAtOnce = 3;

 private:
  struct Trial {
    Choice setting;
    std::string content;                    // its configuration
    std::size_t from = 0;                   // the setting that it started from
    std::set<std::string> moved = {};       // the keys in which it differs from `from`
    std::vector<PilotResult> first = {};    // result of the round in which it was new
    std::vector<PilotResult> repeats = {};  // results of the round that decides
  };
  // Tries one move from a setting. Returns true if it led to a new setting.
  bool add(const Move& move, std::size_t from, double share);
  // Indices of the settings that have been tried, best first.
  std::vector<std::size_t> ranked() const;
  bool repeats_another(std::size_t index) const;
  // The steps that fit into the comparison's seconds at the speed of the fastest pilot (at half
  // length, once there are any) among settings with equally long steps; without seconds,
  // Rival::steps.
  std::int64_t steps_of(std::size_t index) const;

  const Sweep* sweep_;
  const Rival* rival_;
  std::vector<Trial> trials_;                          // the first: the rival as configured
  std::vector<std::set<std::string>> without_effect_;  // moved keys of each pilot without effect
  std::size_t next_ = 0;                               // next move
  std::size_t pilots_ = 0;
  double pilot_seconds_ = 0;
};

}  // namespace abtrain::sweep
