// Options of the `method:` section of a configuration.
#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "compress/reducer_options.h"
#include "methods/ab/options.h"
#include "methods/local/options.h"

namespace abtrain::methods {

// How a synchronization applies the mean change of the workers (methods/outer_step.h).
enum class OuterRule { Average, Sgd, Nesterov };

struct OuterOptions {
  std::optional<OuterRule> name;  // none: auto, MethodKind::outer
  double lr = 0.7;
  double momentum = 0.9;
  // How changes are sent; none: auto, the run's reducer or, for ab, uncompressed.
  compress::ReducerOptions wire = {.name = {}};
};

// All keys of the section; those of a single method are in the base classes.
struct MethodOptions : AbOptions, LocalOptions {
  std::string name = "ab";  // ab | ddp | local-sgd | diloco
  Duration warmup_steps;
  Duration sync_every = Duration::steps(110);
  OuterOptions outer;
};

// What a method knows of a run before it trains.
struct MethodSetup {
  const MethodOptions& options;
  const compress::ReducerOptions& reducer;  // the `reducer:` section
  int workers;
  // The final model's running statistics are recomputed and averaged (evaluate.norm_batches).
  bool renews_statistics = false;
};

// The table of the keys with their ranges and help texts (base/options.h), in
// method_kind.cpp.
Fields fields_of(MethodOptions& options);

}  // namespace abtrain::methods
