// The search of one rival for its setting, a coordinate at a time, in rounds of
// short pilots (sweep/halving.h has the rounds of all rivals).
//
// The moves of Rival::tune are tried in their order, each from the best setting
// so far; after the last, it begins again. A move that leads to no new
// configuration is passed over, and so is one whose keys had no effect in two
// pilots: these gave the bits of the one that they started from. Such a pilot
// does not count as a setting that was tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// The keys of both; where both have one, that of `over`.
Choice merged(const Choice& base, const Choice& over);

// A pilot that has ended; the quality is -infinity where it diverged.
struct PilotResult {
  double quality = -std::numeric_limits<double>::infinity();
  double loss = 0;
  double seconds = 0;  // of training, on the sweep's link
  double steps_per_second = 0;
};

class Search {
 public:
  // Both must outlive it.
  Search(const Sweep& sweep, const Rival& rival) : sweep_(&sweep), rival_(&rival) {}

  // A run that is to be trained.
  struct Run {
    std::size_t setting = 0;
    std::int64_t steps = 0;   // at full length
    std::int64_t repeat = 0;  // 0: with the first seed
  };
  // Pilots of new settings, at most kAtOnce, until so many have been tried; `share`: their length.
  std::vector<Run> explore(std::size_t target, double share);
  // Pilots that decide between the rival as it is and the best other setting, each with two seeds.
  std::vector<Run> decide() const;
  // Takes the results of these pilots.
  void learn(const std::vector<Run>& runs, const std::vector<PilotResult>& results);
  // The run at full length: the best other setting if it is better than the rival as it is by more
  // than the spread of the seeds (their pooled standard deviation), else the rival as it is.
  Run chosen() const;

  // The keys of a setting, besides the rival's own.
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
    std::size_t from = 0;                   // the setting that it was made of
    std::set<std::string> moved = {};       // the keys in which it differs from that
    std::vector<PilotResult> first = {};    // of the round in which it was new: at most one
    std::vector<PilotResult> repeats = {};  // of the round that decides
  };
  // Tries one move from a setting; whether it led to a new one.
  bool add(const Move& move, std::size_t from, double share);
  // The settings that have been tried, the best first.
  std::vector<std::size_t> ranked() const;
  bool repeats_another(std::size_t index) const;
  // So many take the comparison's seconds, by the fastest pilots of the last length.
  std::int64_t steps_of(std::size_t index) const;

  const Sweep* sweep_;
  const Rival* rival_;
  std::vector<Trial> trials_;                          // the first: the rival as it is
  std::vector<std::set<std::string>> without_effect_;  // an item for each such pilot
  std::size_t next_ = 0;                               // of the moves
  std::size_t pilots_ = 0;
  double pilot_seconds_ = 0;
};

}  // namespace abtrain::sweep
