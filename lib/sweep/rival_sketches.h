// The rivals before they are fitted to a configuration: one row each, in the order in which users
// see them (docs/rivals.md), then one row for each reducer.
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
    Tuning,   // fine-tuning; only for configurations of adapters, instead of the usual ones
    Reducer,  // data parallel training by one of the reducers: only by name, and in plans
  };
  std::string name;
  std::string why;
  // The keys that turn a configuration into this rival.
  std::function<Sets(const config::RunOptions&)> set;
  Kind kind = Kind::Usual;
  // Further settings from which its search starts, besides that of `set`.
  std::vector<Sets> starts = {};
  // Whether its interval is chosen so that it sends as many bytes as AB-training.
  bool sends_as_ab = false;
};

const std::vector<RivalSketch>& rival_sketches();

// The moves (sweep/search.h) of a rival with these options, in the order that all rivals share:
// rate, decay, interval, outer rate.
std::vector<Sets> moves_of(const RivalSketch& sketch, const config::RunOptions& options);

}  // namespace abtrain::sweep
