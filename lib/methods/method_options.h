// Options of the `method:` section of a configuration.
#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "compress/reducer_options.h"
#include "methods/ab/options.h"
#include "methods/local/options.h"

namespace abtrain::methods {

// What a synchronization does with the mean change (methods/outer_step.h).
enum class OuterRule { Average, Sgd, Nesterov };

struct OuterOptions {
  std::optional<OuterRule> name;  // none: auto, the method's own
  double lr = 0.7;
  double momentum = 0.9;
  compress::ReducerOptions wire = {.name = {}};  // none: auto, the method's own
};

// The keys that several methods share, and each method's own.
struct MethodOptions : AbOptions, LocalOptions {
  std::string name = "ab";  // ab | ddp | local-sgd | diloco
  Duration warmup_steps;
  Duration sync_every = Duration::steps(110);
  OuterOptions outer;
};

// A run as its method sees it before it trains.
struct MethodSetup {
  const MethodOptions& options;
  const compress::ReducerOptions& reducer;  // the run's
  int workers;
  // Running statistics of the final model are recomputed, and averaged.
  bool renews_statistics = false;
};

// The table of the keys with their ranges and help texts (base/options.h), in
// method_kind.cpp.
Fields fields_of(MethodOptions& options);

}  // namespace abtrain::methods
