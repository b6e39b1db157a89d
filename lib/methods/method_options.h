// Options of the `method:` section of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/duration.h"
#include "compress/reducer_options.h"
#include "linalg/batch.h"
#include "linalg/rank_rule.h"

namespace abtrain {
class Fields;
}

namespace abtrain::methods {

inline compress::ReducerOptions same_reducer() {
  compress::ReducerOptions options;
  options.name = "same";
  return options;
}

// How the dense (FULL) phases of AB-training average their gradients.
struct FullPhaseOptions {
  // Name "same" (the default) takes the config's `reducer:`.
  compress::ReducerOptions reducer = same_reducer();
  // Steps between averagings of the parameters; 1: gradients, at each step.
  std::int64_t sync_every = 1;
};

struct MethodOptions {
  std::string name = "ab";            // ab | ddp | local-sgd | diloco
  std::string group_size = "auto";    // auto | 1, 2, ...
  std::string sync = "only-learned";  // only-learned | with-stale | full | only-b
  std::string sync_dtype = "fp32";    // fp32 | bf16
  Duration warmup_steps;
  Duration sync_every = Duration::steps(110);
  Duration full_rank_steps = Duration::steps(10);
  std::string anchor = "warmup";      // warmup | reference
  bool cut_first = true;
  double factor_lr_scale = 1;
  std::string ramp = "linear";        // none | linear | reference
  double ramp_start = 1e-5;
  Duration rebound_steps = Duration::steps(-1);  // negative: the default
  std::vector<std::string> keep_dense = {"default"};  // globs, or default
  linalg::RankRule rank;
  std::string svd = "auto";           // auto | exact | randomized
  FullPhaseOptions full_phase;
  std::string average = "params";     // local-sgd: params | params+moments
  double outer_lr = 0.7;              // diloco
  double outer_momentum = 0.9;
  std::int64_t fragments = 1;
  std::int64_t delay = 0;             // steps
  double mixing = 1;                  // share of the synchronised fragment
};

// The route that the option `svd` names.
linalg::SvdRoute svd_route(const std::string& svd);

// The table of the keys with their ranges and help texts (base/options.h).
Fields fields_of(MethodOptions& options);

}  // namespace abtrain::methods
