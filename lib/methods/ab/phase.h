// When AB-training switches phase (FULL or AB), and how the learning rate recovers from a switch.
//
// W: warm-up steps; S: steps between syncs; D: full-rank (dense) steps after a sync, 0 <= D < S;
// u = t - W (anchor warmup), or u = t (anchor reference, as the authors do):
//   t <  W                         FULL
//   t == W                         decompose, AB
//   t >  W, in AB,   u % S == 0    sync, FULL; with D == 0 decompose at once
//   t >  W, in FULL, u % S == D    decompose, AB
// If groups train both factors and D == 0, only some syncs decompose: at most kAveragedCuts of the
// syncs up to the end of the annealing, evenly spread and including the last of them. All other
// syncs average the factors, as do the syncs of adapters except with `sync: full`.
#pragma once

#include <cstdint>

#include "methods/method_options.h"
#include "methods/timeline.h"

namespace abtrain::methods {

constexpr std::int64_t kAveragedCuts = 16;

struct PhasePlan {
  std::int64_t warmup = 0;
  std::int64_t interval = 1;
  std::int64_t full_rank = 0;
  bool reference_anchor = false;
  std::int64_t anneal = 0;  // steps of falling ranks after the warm-up
  bool averages = false;    // syncs that do not decompose average the factors
  bool cut_first = true;
};

Timeline ab_timeline(const PhasePlan& plan, std::int64_t steps);

// The plan in whole steps. An S or D given as a share of the run is at least one step; such a D is
// at most S - 1. Throws Error(Config) unless 1 <= S and 0 <= D < S.
PhasePlan make_phase_plan(const MethodOptions& options, const RunLength& run);

// The rank rule of a decomposition after t steps. With a share x = (t - W) / anneal of the
// annealing done, its ratio is from^(1 - x) ratio^x, where `from` is the smaller of anneal_from and
// ratio. So equal steps remove equal shares of the parameters.
linalg::RankRule rule_after(const MethodOptions& options, const PhasePlan& plan, std::int64_t t);

// After a switch the learning rate climbs from `start` back to the schedule over R steps.
struct Ramp {
  RampKind kind = RampKind::Linear;
  double start = 1e-5;
  std::int64_t steps = 0;  // R
};

Ramp make_ramp(const MethodOptions& options, const PhasePlan& plan, const RunLength& run);

// Learning rate of the k-th step (k >= 1) after a switch. `at_switch`: the schedule's rate then.
// linear:    start at k = 1, then even steps up to the schedule at k = R + 1.
// reference: start at k = 1, then k * (at_switch - start) / R, but at least
//            start and at most scheduled.
double ramped_rate(const Ramp& ramp, std::int64_t k, double scheduled, double at_switch);

}  // namespace abtrain::methods
