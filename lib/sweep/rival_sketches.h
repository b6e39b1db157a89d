// The rivals before they are fitted to a configuration: a row for each, in the
// order in which users see them (docs/rivals.md), then one for each reducer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/run_options.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

struct RivalSketch {
  enum class Kind {
    Usual,
    Rare,     // only with --all
    Small,    // a dense network of AB-training's size
    Tuning,   // fine-tuning; only for configurations of adapters, in place of the usual ones
    Reducer,  // data parallel training by one of the reducers: only by name, and in plans
  };
  std::string name;
  std::string why;
  // The keys that make a configuration this rival.
  std::function<Sets(const config::RunOptions&)> set;
  Kind kind = Kind::Usual;
  // Settings from which its search begins besides that of `set`.
  std::vector<Sets> starts = {};
  // Its interval is the one with which it sends as many bytes as AB-training.
  bool sends_as_ab = false;
};

const std::vector<RivalSketch>& rival_sketches();

// The moves (sweep/search.h) of a rival with these options, in the order in which all have theirs:
// rate, decay, interval, outer rate.
std::vector<Sets> moves_of(const RivalSketch& sketch, const config::RunOptions& options);

}  // namespace abtrain::sweep
