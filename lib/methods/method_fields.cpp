#include "base/options.h"
#include "methods/method_kind.h"
#include "methods/method_options.h"

namespace abtrain::methods {
namespace {

const Names<SyncMode> kSyncModes = {
    {"only-learned", SyncMode::OnlyLearned},
    {"with-stale", SyncMode::WithStale},
    {"full", SyncMode::Full},
    {"only-b", SyncMode::OnlyB}};

const Names<Averaged> kAveraged = {
    {"params", Averaged::Params},
    {"params+moments", Averaged::ParamsAndMoments}};

Fields fields_of(OuterOptions& o) {
  Fields f;
  f.choice<std::optional<OuterRule>>(
      "name",
      o.name,
      {{"auto", std::nullopt},
       {"average", OuterRule::Average},
       {"sgd", OuterRule::Sgd},
       {"nesterov", OuterRule::Nesterov}},
      "the outer optimizer; average: the mean itself; auto: nesterov for "
      "diloco, else average");
  f.number(
      "lr",
      o.lr,
      above_to(0, kLargest),
      "sgd, nesterov: learning rate of the outer step");
  f.number(
      "momentum",
      o.momentum,
      from_to_below(0, 1),
      "sgd, nesterov: momentum of the outer step");
  f.section(
      "wire",
      compress::fields_of(o.wire, "auto"),
      "how the changes are sent; auto: by the run's reducer, or for ab "
      "plainly");
  return f;
}

Fields fields_of(FullPhaseOptions& o) {
  Fields f;
  f.section(
      "reducer",
      compress::fields_of(o.reducer, "same"),
      "reducer of the dense phases; same: the run's reducer");
  f.integer(
      "sync_every",
      o.sync_every,
      between(1, kMaxSteps),
      "steps between averagings of the parameters; 1: the gradients are "
      "averaged at each step");
  return f;
}

}  // namespace

std::string name_of(SyncMode sync) {
  return name_in(kSyncModes, sync);
}

std::string name_of(Averaged average) {
  return name_in(kAveraged, average);
}

Fields fields_of(MethodOptions& o) {
  Fields f;
  f.choice("name", o.name, method_names(), "training method");
  f.auto_or_integer(
       "group_size",
       o.group_size,
       between(1, 65536),
       "ab: workers per group; auto: two groups of half the workers")
      .free(MayChange::WithWorkers);
  f.choice<SyncMode>(
      "sync", o.sync, kSyncModes, "ab: what a synchronization averages");
  f.duration(
      "warmup_steps",
      o.warmup_steps,
      between(0, kMaxSteps),
      "ab: dense training before the first decomposition; local-sgd, diloco: "
      "data-parallel training before the first local step");
  f.duration(
      "sync_every",
      o.sync_every,
      above_to(0, kMaxSteps),
      "ab, local-sgd, diloco: interval between synchronizations");
  f.duration(
      "full_rank_steps",
      o.full_rank_steps,
      between(0, kMaxSteps),
      "ab: dense training after a synchronization");
  f.choice<Anchor>(
      "anchor",
      o.anchor,
      {{"warmup", Anchor::Warmup}, {"reference", Anchor::Reference}},
      "ab: whether sync_every counts from the end of the warm-up or from "
      "step 0");
  f.flag("cut_first", o.cut_first, "ab: the first decomposition cuts ranks");
  f.number(
      "factor_lr_scale",
      o.factor_lr_scale,
      above_to(0, kLargest),
      "ab: the factors' learning rate divided by that of the rest");
  f.choice<RampKind>(
      "ramp",
      o.ramp,
      {{"none", RampKind::None},
       {"linear", RampKind::Linear},
       {"reference", RampKind::Reference}},
      "ab: how the learning rate recovers after a switch of phase");
  f.number(
      "ramp_start",
      o.ramp_start,
      between(0, kLargest),
      "ab: first learning rate of a ramp");
  f.auto_or_duration(
      "rebound_steps",
      o.rebound_steps,
      between(0, kMaxSteps),
      "ab: length of a ramp; auto: full_rank_steps (or 20), at most the "
      "length of the factored phase");
  f.choice<FactorMoments>(
      "moments",
      o.moments,
      {{"zero", FactorMoments::Zero}, {"carry", FactorMoments::Carry}},
      "ab: the optimizer's moments of a factor after a decomposition: zero, or "
      "those of before, in the new basis");
  f.texts(
      "keep_dense",
      o.keep_dense,
      "ab: layers that are never factored, names or globs; default: the "
      "model's own choice");
  f.number(
      "dense_share",
      o.dense_share,
      from_to_below(0, 1),
      "ab: the smallest of all other layers, which together have at most this "
      "share of their parameters, are not factored either");
  f.section("rank", linalg::fields_of(o.rank), "ab: rank of each layer");
  f.duration(
      "anneal_steps",
      o.anneal_steps,
      between(0, kMaxSteps),
      "ab: from the end of the warm-up on, decompositions cut to a growing "
      "ratio for so long, and then to rank.ratio; for the rules ratio and "
      "budget");
  f.number(
      "anneal_from",
      o.anneal_from,
      between(1, 1e6),
      "ab: the ratio of the first decomposition with anneal_steps");
  f.choice<linalg::SvdRoute>(
      "svd",
      o.svd,
      {{"auto", linalg::SvdRoute::Auto},
       {"exact", linalg::SvdRoute::Exact},
       {"randomized", linalg::SvdRoute::Randomized}},
      "ab: how weights are decomposed; exact: all singular values; randomized: "
      "only as many as the rule needs (by a range finder that proves its "
      "rank); auto: randomized if the shorter side is at least 2048");
  f.section("full_phase", fields_of(o.full_phase), "ab: the dense phases");
  f.choice<Averaged>(
      "average",
      o.average,
      kAveraged,
      "local-sgd: what is averaged besides running statistics");
  f.section(
      "outer",
      fields_of(o.outer),
      "ab, local-sgd, diloco: what a synchronization does with the mean change "
      "of the workers' parameters, and how it is sent");
  f.integer(
      "fragments",
      o.fragments,
      between(1, 4096),
      "diloco: parts of the model that are synchronized in turn, each every "
      "sync_every steps");
  f.integer(
      "delay",
      o.delay,
      between(0, kMaxSteps),
      "diloco: steps between the start of a synchronization and the use of "
      "its result; less than sync_every / fragments");
  f.number(
      "mixing",
      o.mixing,
      above_to(0, 1),
      "diloco: share of the synchronized parameters in those that a worker "
      "continues with; the rest is its own");
  return f;
}

}  // namespace abtrain::methods
