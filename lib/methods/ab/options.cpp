#include "methods/ab/options.h"

#include "base/options.h"
#include "methods/method_options.h"

namespace abtrain::methods {
namespace {

const Names<SyncMode> kSyncModes = {
    {"only-learned", SyncMode::OnlyLearned},
    {"with-stale", SyncMode::WithStale},
    {"full", SyncMode::Full},
    {"only-b", SyncMode::OnlyB}};

Fields fields_of(FullPhaseOptions& o) {
  Fields f;
  f.section(
      "reducer", compress::fields_of(o.reducer, "same"),
      "reducer of the dense phases; same: the run's reducer");
  f.integer(
      "sync_every", o.sync_every, between(1, kMaxSteps),
      "steps between averagings of the parameters; 1: the gradients are "
      "averaged at each step");
  return f;
}

}  // namespace

std::string name_of(SyncMode sync) {
  return name_in(kSyncModes, sync);
}

void add_ab_fields(Fields& f, MethodOptions& o) {
  f.auto_or_integer(
       "group_size", o.group_size, between(1, 65536),
       "ab: workers per group; auto: the fewest groups that fit, at least two")
      .free(MayChange::WithWorkers);
  f.choice<Trains>(
      "trains", o.trains, {{"one", Trains::One}, {"both", Trains::Both}},
      "ab: whether a group trains one factor, with the other one frozen, or both");
  f.choice<SyncMode>("sync", o.sync, kSyncModes, "ab: what a synchronization averages");
  f.duration(
      "full_rank_steps", o.full_rank_steps, between(0, kMaxSteps),
      "ab: dense training after a synchronization");
  f.choice<Anchor>(
      "anchor", o.anchor, {{"warmup", Anchor::Warmup}, {"reference", Anchor::Reference}},
      "ab: whether sync_every counts from the end of the warm-up or from "
      "step 0");
  f.flag("cut_first", o.cut_first, "ab: the first decomposition cuts ranks");
  f.flag(
      "keep_variance", o.keep_variance,
      "ab: without a warm-up, scale the first factors so that a product has the dense weight's sum "
      "of squares");
  f.number(
      "factor_lr_scale", o.factor_lr_scale, above_to(0, kLargest),
      "ab: the factors' learning rate divided by that of the rest");
  f.choice<RampKind>(
      "ramp", o.ramp,
      {{"none", RampKind::None}, {"linear", RampKind::Linear}, {"reference", RampKind::Reference}},
      "ab: how the learning rate recovers after a switch of phase");
  f.number("ramp_start", o.ramp_start, between(0, kLargest), "ab: first learning rate of a ramp");
  f.auto_or_duration(
      "rebound_steps", o.rebound_steps, between(0, kMaxSteps),
      "ab: length of a ramp; auto: full_rank_steps (or 20), at most the "
      "length of the factored phase");
  f.choice<FactorMoments>(
      "moments", o.moments, {{"zero", FactorMoments::Zero}, {"carry", FactorMoments::Carry}},
      "ab: the optimizer's moments of a factor after a decomposition: zero, or "
      "those of before, in the new basis");
  f.texts(
      "keep_dense", o.keep_dense,
      "ab: layers that are never factored, names or globs; default: the "
      "model's own choice");
  f.number(
      "dense_share", o.dense_share, from_to_below(0, 1),
      "ab: the smallest of all other layers, which together have at most this "
      "share of their parameters, are not factored either");
  f.section("rank", linalg::fields_of(o.rank), "ab: rank of each layer");
  f.duration(
      "anneal_steps", o.anneal_steps, between(0, kMaxSteps),
      "ab: from the end of the warm-up on, decompositions cut to a growing "
      "ratio for so long, and then to rank.ratio; for the rules ratio and "
      "budget");
  f.number(
      "anneal_from", o.anneal_from, between(1, 1e6),
      "ab: the ratio of the first decomposition with anneal_steps");
  f.choice<linalg::SvdRoute>(
      "svd", o.svd,
      {{"auto", linalg::SvdRoute::Auto},
       {"exact", linalg::SvdRoute::Exact},
       {"randomized", linalg::SvdRoute::Randomized}},
      "ab: how weights are decomposed; exact: all singular values; randomized: "
      "only as many as the rule needs (by a range finder that proves its "
      "rank); auto: randomized if the shorter side is at least 2048");
  f.section("full_phase", fields_of(o.full_phase), "ab: the dense phases");
}

}  // namespace abtrain::methods
