// Options of the `method:` section of a configuration.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
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

// What a synchronization averages (methods/ab/synchronize.h).
enum class SyncMode { OnlyLearned, WithStale, Full, OnlyB };

// Whether sync_every counts from the end of the warm-up, or from step 0 as the
// authors do.
enum class Anchor { Warmup, Reference };

// How the learning rate recovers after a switch (methods/ab/phase.h).
enum class RampKind { None, Linear, Reference };

// What becomes of a factor's moments in a decomposition.
enum class FactorMoments { Zero, Carry };

// What local-sgd averages.
enum class Averaged { Params, ParamsAndMoments };

// How the dense (FULL) phases of AB-training average their gradients.
struct FullPhaseOptions {
  compress::ReducerOptions reducer = {.name = {}};  // none: the run's
  // Steps between averagings of the parameters; 1: gradients, at each step.
  std::int64_t sync_every = 1;
};

// What a synchronization does with the mean change (methods/outer_step.h).
enum class OuterRule { Average, Sgd, Nesterov };

struct OuterOptions {
  std::optional<OuterRule> name;  // none: auto, the method's own
  double lr = 0.7;
  double momentum = 0.9;
  compress::ReducerOptions wire = {.name = {}};  // none: auto, the method's own
};

struct MethodOptions {
  std::string name = "ab";                 // ab | ddp | local-sgd | diloco
  std::optional<std::int64_t> group_size;  // none: auto
  SyncMode sync = SyncMode::OnlyLearned;
  Duration warmup_steps;
  Duration sync_every = Duration::steps(110);
  Duration full_rank_steps = Duration::steps(10);
  Anchor anchor = Anchor::Warmup;
  bool cut_first = true;
  double factor_lr_scale = 1;
  RampKind ramp = RampKind::Linear;
  double ramp_start = 1e-5;
  std::optional<Duration> rebound_steps;              // none: auto
  FactorMoments moments = FactorMoments::Zero;
  std::vector<std::string> keep_dense = {"default"};  // globs, or default
  double dense_share = 0;  // of the parameters of the other layers
  linalg::RankRule rank;
  Duration anneal_steps;   // after the warm-up; 0: every cut is at rank.ratio
  double anneal_from = 2;  // the ratio of the first cut
  linalg::SvdRoute svd = linalg::SvdRoute::Auto;
  FullPhaseOptions full_phase;
  Averaged average = Averaged::Params;  // local-sgd
  OuterOptions outer;
  std::int64_t fragments = 1;  // diloco
  std::int64_t delay = 0;      // steps
  double mixing = 1;           // share of the synchronized fragment
};

// A run as its method sees it before it trains.
struct MethodSetup {
  const MethodOptions& options;
  const compress::ReducerOptions& reducer;  // the run's
  int workers;
  // Running statistics of the final model are taken anew, and averaged.
  bool renews_statistics = false;
};

// The words that stand for these in a configuration.
std::string name_of(SyncMode sync);
std::string name_of(Averaged average);

// The table of the keys with their ranges and help texts (base/options.h).
Fields fields_of(MethodOptions& options);

}  // namespace abtrain::methods
