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
  return f;
}

}  // namespace

std::string name_of(SyncMode sync) {
  return name_in(kSyncModes, sync);
}

void add_ab_fields(Fields& f, MethodOptions& o) {
  f.auto_or_integer(
       "group_size", o.group_size, between(1, 65536),
       "workers per group; auto: the fewest groups that fit, at least two")
      .free(MayChange::WithWorkers);
  f.choice<Trains>(
      "trains", o.trains, {{"one", Trains::One}, {"both", Trains::Both}},
      "whether a group trains one factor, with the other one frozen, or both");
  f.choice<SyncMode>("sync", o.sync, kSyncModes, "what a synchronization averages");
  f.duration(
      "full_rank_steps", o.full_rank_steps, between(0, kMaxSteps),
      "dense training after a synchronization");
  f.choice<Anchor>(
      "anchor", o.anchor, {{"warmup", Anchor::Warmup}, {"reference", Anchor::Reference}},
      "whether sync_every counts from the end of the warm-up or from "
      "step 0");
  f.flag("cut_first", o.cut_first, "the first decomposition cuts ranks");
  f.flag(
      "keep_variance", o.keep_variance,
      "without a warm-up, scale the first factors so that a product has the dense weight's sum "
      "of squares");
  f.number(
      "factor_lr_scale", o.factor_lr_scale, above_to(0, kLargest),
      "the factors' learning rate divided by that of the rest");
  f.choice<RampKind>(
      "ramp", o.ramp,
      {{"none", RampKind::None}, {"linear", RampKind::Linear}, {"reference", RampKind::Reference}},
      "how the learning rate recovers after a switch of phase");
  f.auto_or_duration(
      "rebound_steps", o.rebound_steps, between(0, kMaxSteps),
      "length of a ramp; auto: full_rank_steps (or 20), at most the "
      "length of the factored phase");
  f.choice<FactorMoments>(
      "moments", o.moments, {{"zero", FactorMoments::Zero}, {"carry", FactorMoments::Carry}},
      "the optimizer's moments of a factor after a decomposition: zero, or "
      "those of before, in the new basis");
  f.texts(
      "keep_dense", o.keep_dense,
      "layers that are never factored, names or globs; default: the "
      "model's own choice");
  f.texts("only", o.only, "names or globs of the only layers that are factored; []: all");
  f.choice<Remainder>(
      "remainder", o.remainder, {{"drop", Remainder::Drop}, {"freeze", Remainder::Freeze}},
      "what becomes of what the factors do not hold of a weight; freeze: it stays, and is "
      "not trained, so that the factors are an adapter of the weight");
  f.choice<AdapterStart>(
       "start", o.start, {{"svd", AdapterStart::Svd}, {"zero", AdapterStart::Zero}},
       "an adapter's first factors: the weight's largest singular values, as in PiSSA, or a "
       "product of zero, as in LoRA")
      .of({"freeze"}, "remainder");
  f.number(
       "alpha", o.alpha, between(0, kLargest),
       "LoRA's alpha: with start zero, an adapter's product counts alpha / rank times; 0: once")
      .of({"freeze"}, "remainder");
  f.choice<Roles>(
       "roles", o.roles, {{"fixed", Roles::Fixed}, {"alternate", Roles::Alternate}},
       "which factor a group trains; alternate: after each synchronization the other one; "
       "with sync only-b, all groups train B and A in turn, as in RoLoRA")
      .of({"freeze"}, "remainder");
  f.number(
      "dense_share", o.dense_share, from_to_below(0, 1),
      "the smallest of all other layers, which together have at most this "
      "share of their parameters, are not factored either");
  f.section("rank", linalg::fields_of(o.rank), "rank of each layer");
  f.duration(
      "anneal_steps", o.anneal_steps, between(0, kMaxSteps),
      "from the end of the warm-up on, decompositions cut to a growing "
      "ratio for so long, and then to rank.ratio; for the rules ratio and "
      "budget");
  f.number(
      "anneal_from", o.anneal_from, between(1, 1e6),
      "the ratio of the first decomposition with anneal_steps");
  f.auto_or_integer(
      "blocks", o.blocks, between(1, 64),
      "k: each layer is factored as a grid of k x k blocks, or of as many as "
      "divide its inputs and outputs and leave each block a rank; auto: 8");
  f.section("full_phase", fields_of(o.full_phase), "the dense phases");
}

}  // namespace abtrain::methods
