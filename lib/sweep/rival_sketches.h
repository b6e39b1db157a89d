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
    Reducer,  // data parallel training by one of the reducers: only by name, and in plans
  };
  std::string name;
  std::string why;
  // The keys that make a configuration this rival.
  std::function<Sets(const config::RunOptions&)> set;
  Kind kind = Kind::Usual;
  // Settings from which its search begins besides that of `set`.
  std::vector<Sets> starts = {};
};

const std::vector<RivalSketch>& rival_sketches();

}  // namespace abtrain::sweep
