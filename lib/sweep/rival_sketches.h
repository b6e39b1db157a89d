// The rivals (methods to compare) before they are fitted to a configuration: one row each, in the
// order in which users see them (docs/rivals.md), then one row for each reducer.
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
    Tuning,   // fine-tuning; for configurations of adapters, instead of usual rivals
    Reducer,  // data parallel training with a reducer: only if named, and in plans
  };
  std::string name;
  std::string why;
  // The keys that turn a configuration into this rival.
  std::function<Sets(const config::RunOptions&)> set;
  Kind kind = Kind::Usual;
  // Moves that its search tries first, before the ones that all rivals share (moves_of()).
  std::vector<Sets> starts = {};
  // Chooses its synchronization interval so that it sends as many bytes as AB-training.
  bool sends_as_ab = false;
};

const std::vector<RivalSketch>& rival_sketches();

// The moves (sweep/search.h) of a rival with these options, in this order: none, its starts, then
// for all rivals learning rate, weight decay, synchronization interval and outer learning rate.
std::vector<Sets> moves_of(const RivalSketch& sketch, const config::RunOptions& options);

}  // namespace abtrain::sweep
