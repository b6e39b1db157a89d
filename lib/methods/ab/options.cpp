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
      "which factors a group trains: one, with the other one frozen, or both");
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
      "factors learn at this multiple of the learning rate");
  f.choice<RampKind>(
      "ramp", o.ramp,
      {{"none", RampKind::None}, {"linear", RampKind::Linear}, {"reference", RampKind::Reference}},
      "how the learning rate rises again after a switch of phase");
  f.auto_or_duration(
      "rebound_steps", o.rebound_steps, between(0, kMaxSteps),
      "length of a ramp; auto: full_rank_steps (or 20), at most the "
      "length of the factored phase");
  f.choice<FactorMoments>(
      "moments", o.moments, {{"zero", FactorMoments::Zero}, {"carry", FactorMoments::Carry}},
      "what a decomposition does with the factors' optimizer moments: reset them to zero, or carry "
      "them over into the new basis");
  f.texts(
      "keep_dense", o.keep_dense,
      "layers that are never factored, names or globs; default: the "
      "model's own choice");
  f.texts("only", o.only, "names or globs of the only layers that are factored; []: all");
  f.choice<Remainder>(
      "remainder", o.remainder, {{"drop", Remainder::Drop}, {"freeze", Remainder::Freeze}},
      "what happens to the part of a weight that its factors do not hold; drop: it is lost; "
      "freeze: it stays, untrained, so that the factors are an adapter");
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
      "the smallest of the remaining layers stay dense, too, as long as they have at most this "
      "share of the remaining parameters");
  f.section("rank", linalg::fields_of(o.rank), "rank of each layer");
  f.duration(
      "anneal_steps", o.anneal_steps, between(0, kMaxSteps),
      "after the warm-up, decompositions cut to a ratio that grows up to rank.ratio over this "
      "length; for the rules ratio and budget");
  f.number(
      "anneal_from", o.anneal_from, between(1, 1e6),
      "the ratio of the first decomposition with anneal_steps");
  f.auto_or_integer(
      "blocks", o.blocks, between(1, 64),
      "k: each layer is factored as a grid of k x k blocks, or of the most that divide its inputs "
      "and outputs and leave each block a rank of 1; auto: 8");
  f.section("full_phase", fields_of(o.full_phase), "the dense phases");
}

}  // namespace abtrain::methods
