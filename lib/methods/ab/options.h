// The keys of AB-training in the `method:` section.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "compress/reducer_options.h"
#include "linalg/rank_rule.h"

namespace abtrain {
class Fields;
}

namespace abtrain::methods {

struct MethodOptions;

// How a synchronization merges the groups' factors (methods/ab/synchronize.h).
enum class SyncMode { OnlyLearned, WithStale, Full, OnlyB };

// Which factors a group trains: one of them, with the other one frozen, or both.
enum class Trains { One, Both };

// Whether sync_every counts from the end of the warm-up, or from step 0 as the
// authors do.
enum class Anchor { Warmup, Reference };

// How the learning rate recovers after a switch (methods/ab/phase.h).
enum class RampKind { None, Linear, Reference };

// After a decomposition, a factor's optimizer moments are zero, or carried over into its new basis.
enum class FactorMoments { Zero, Carry };

// The remainder is the part of a weight that its factors do not hold. Drop: it is lost, and the
// weight is the factors' product. Freeze: it stays, untrained, and the factors are an adapter
// (nn/weight.h).
enum class Remainder { Drop, Freeze };

// What an adapter begins with: the largest singular values of the weight (PiSSA, arXiv 2404.02948),
// or a product of zero (LoRA, 2106.09685).
enum class AdapterStart { Svd, Zero };

// Whether a group always trains the same factor, or swaps factors after each synchronization. With
// SyncMode::OnlyB, Alternate means that all groups train B and A in turn (RoLoRA, arXiv
// 2409.02346).
enum class Roles { Fixed, Alternate };

// How the dense (FULL) phases of AB-training average their gradients.
struct FullPhaseOptions {
  compress::ReducerOptions reducer = {.name = {}};  // none: the run's
};

struct AbOptions {
  std::optional<std::int64_t> group_size;  // workers per group; none: auto
  Trains trains = Trains::One;
  SyncMode sync = SyncMode::OnlyLearned;
  Duration full_rank_steps = Duration::steps(10);
  Anchor anchor = Anchor::Warmup;
  bool cut_first = true;
  bool keep_variance = false;  // scale the first factors if there is no warm-up
  double factor_lr_scale = 1;
  RampKind ramp = RampKind::Linear;
  std::optional<Duration> rebound_steps;  // none: auto
  FactorMoments moments = FactorMoments::Zero;
  std::vector<std::string> keep_dense = {"default"};  // globs, or default
  std::vector<std::string> only;                      // globs of layers to factor; empty: all
  Remainder remainder = Remainder::Drop;
  AdapterStart start = AdapterStart::Svd;
  double alpha = 0;  // start zero: the product counts alpha / rank times; 0: once
  Roles roles = Roles::Fixed;
  double dense_share = 0;  // share of parameters that may stay dense
  linalg::RankRule rank;
  Duration anneal_steps;   // after the warm-up; 0: every cut is at rank.ratio
  double anneal_from = 2;  // the ratio of the first cut
  // k: each layer is factored in a grid of k x k blocks (nn/weight.h); none: auto.
  std::optional<std::int64_t> blocks = 1;
  FullPhaseOptions full_phase;
};

// The value of method.blocks: auto.
constexpr std::int64_t kAutoBlocks = 8;

inline bool adapts(const AbOptions& options) {
  return options.remainder == Remainder::Freeze;
}

// Whether all synchronizations keep the bases and ranks of the first AB phase.
inline bool keeps_bases(const AbOptions& options) {
  return adapts(options) && options.sync != SyncMode::Full;
}

// Whether all groups train the same factors.
inline bool has_one_role(const AbOptions& options) {
  return options.trains == Trains::Both || options.sync == SyncMode::OnlyB;
}

// The mode's name in a configuration.
std::string name_of(SyncMode sync);

void add_ab_fields(Fields& fields, MethodOptions& options);

}  // namespace abtrain::methods
