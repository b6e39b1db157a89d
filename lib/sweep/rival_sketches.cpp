#include "sweep/rival_sketches.h"

#include "base/named.h"
#include "base/scalars.h"
#include "base/text.h"
#include "compress/schemes.h"
#include "methods/method_kind.h"

namespace abtrain::sweep {

namespace {

using config::RunOptions;

// Muon with the settings of the tables in docs/results, or as the configuration already has it.
Sets muon(const RunOptions& o, const char* matrices = "all") {
  if (o.optimizer.name == "muon") {
    return {std::string("optimizer.matrices=") + matrices};
  }
  return {
      "optimizer.name=muon",
      "optimizer.lr=0.02",
      "optimizer.momentum=0.95",
      "optimizer.scale=spectral",
      std::string("optimizer.matrices=") + matrices,
      "optimizer.other_lr=0.001",
      "optimizer.weight_decay=0"};
}

// AdamW as the configuration has it, else at the configured Muon's rate for other parameters, else
// at 0.001.
Sets adamw(const RunOptions& o) {
  if (o.optimizer.name == "adamw") {
    return {};
  }
  const double lr = o.optimizer.name == "muon" ? o.optimizer.other_lr : 1e-3;
  return {
      "optimizer.name=adamw", "optimizer.lr=" + print_number(lr), "optimizer.momentum=0.9",
      "optimizer.scale=match_rms"};
}

Sets ddp(const RunOptions&) {
  return {"method.name=ddp"};
}

Sets powersgd(const RunOptions& o) {
  return joined({ddp(o), {"reducer.name=powersgd", "reducer.rank=4"}});
}

// DiLoCo's outer steps, with momentum 0.5: runs of minutes have few synchronizations, too few for
// the usual 0.9 to settle (docs/results/compression.md).
Sets outer(const char* every) {
  return {"method.name=diloco",
          "method.warmup_steps=0",
          std::string("method.sync_every=") + every,
          "method.outer.name=nesterov",
          "method.outer.lr=1",
          "method.outer.momentum=0.5",
          "reducer.name=plain",
          "reducer.dtype=bf16"};
}

Sets ddp_muon(const RunOptions& o) {
  return joined({ddp(o), muon(o)});
}

const Sets kTwoBits = {"method.outer.wire.name=int2", "method.outer.wire.error_decay=0.95"};

// Sends the workers' changes in two bits; `inside` sets the optimizer of each worker.
Sets two_bits(const Sets& inside) {
  return joined({outer("20"), inside, kTwoBits});
}

Sets muloco(const RunOptions& o) {
  return two_bits(muon(o));
}

Sets sparseloco(const RunOptions& o) {
  return joined(
      {outer("10"),
       adamw(o),
       {"method.outer.wire.name=sparseloco", "method.outer.wire.density=0.03125",
        "method.outer.wire.error_decay=0.95"}});
}

Sets ab_recipe(const RunOptions& o) {
  return joined(
      {{"method.name=ab", "method.trains=both", "method.group_size=1", "method.sync=only-learned",
        "method.warmup_steps=0", "method.keep_variance=true", "method.sync_every=10",
        "method.full_rank_steps=0", "method.moments=carry", "method.ramp=none",
        "method.factor_lr_scale=1", "method.rank.rule=budget", "method.rank.floor=0.7",
        "method.anneal_steps=50 %", "method.full_phase.reducer.name=plain",
        "method.outer.name=nesterov", "method.outer.lr=0.7", "method.outer.momentum=0.5",
        "method.outer.wire.name=int2"},
       // Muon for the factors only: for wide dense matrices, its steps take seconds, so AdamW
       // trains these.
       o.optimizer.name == "muon" ? Sets{} : muon(o, "factors")});
}

// The configured adapters, but with LoRA's initialization and AdamW.
Sets lora(const RunOptions& o, const char* trains, const char* sync) {
  return joined(
      {{"method.name=ab", "method.remainder=freeze", "method.start=zero", "method.roles=fixed",
        std::string("method.trains=") + trains, std::string("method.sync=") + sync,
        "method.outer.name=average", "method.outer.wire.name=plain"},
       adamw(o)});
}

Sets lora_ddp(const RunOptions& o) {
  return joined({lora(o, "both", "only-learned"), {formatted("method.group_size={}", o.workers)}});
}

Sets lora_each(const RunOptions& o, const char* trains, const char* sync) {
  return joined({lora(o, trains, sync), {"method.group_size=1"}});
}

// `sets` with outer steps that send two bits per element.
Sets coded(const Sets& sets) {
  return joined(
      {sets,
       {"method.outer.name=nesterov", "method.outer.lr=0.7", "method.outer.momentum=0.5"},
       kTwoBits});
}

std::vector<RivalSketch> tuning_sketches() {
  using Kind = RivalSketch::Kind;
  // LoRA's best rate is often about ten times the best rate for training all parameters ("LoRA
  // Without Regret", Thinking Machines 2025; docs/results/adapters.md).
  const std::vector<Sets> rates = {{"optimizer.lr=x 10"}};
  return {
      {"full_ddp", "all parameters, all gradients averaged, AdamW",
       [](const RunOptions& o) {
         return joined({ddp(o), adamw(o), {"model.frozen=[]"}});
       },
       Kind::Tuning},
      {"full_muloco_2bit",
       "all parameters, Muon on each worker, changes in 2 bits (MuLoCo)",
       [](const RunOptions& o) {
         return joined({muloco(o), {"model.frozen=[]"}});
       },
       Kind::Tuning,
       {{"method.outer.lr=0.7", "method.sync_every=10"}}},
      {"lora_ddp", "both factors of LoRA, all gradients averaged", lora_ddp, Kind::Tuning, rates},
      {"lora_local", "both factors of LoRA on each worker, each averaged by itself (FedAvg)",
       [](const RunOptions& o) { return lora_each(o, "both", "only-learned"); }, Kind::Tuning,
       rates},
      {"lora_only_b", "LoRA's B on each worker, A as drawn (FFA-LoRA)",
       [](const RunOptions& o) { return lora_each(o, "one", "only-b"); }, Kind::Tuning, rates},
      {"lora_roles", "LoRA's A on some workers, B on the others, changes in 2 bits (AB-training)",
       [](const RunOptions& o) { return coded(lora_each(o, "one", "only-learned")); }, Kind::Tuning,
       rates},
      {"lora_in_turn", "LoRA's B and A in turn on all workers, changes in 2 bits (RoLoRA)",
       [](const RunOptions& o) {
         return joined(
             {coded(lora_each(o, "one", "only-b")),
              {"method.roles=alternate", "method.moments=carry"}});
       },
       Kind::Tuning, rates},
      {"lora_both_2bit", "both factors of LoRA on each worker, changes in 2 bits",
       [](const RunOptions& o) { return coded(lora_each(o, "both", "only-learned")); },
       Kind::Tuning, rates},
  };
}

// Data parallel training by each reducer except powersgd, which is a usual rival.
std::vector<RivalSketch> reducer_sketches() {
  std::vector<RivalSketch> all;
  const auto add = [&](const std::string& name, const auto& set) {
    all.push_back(
        {"ddp_" + name, "the large network, gradients by the reducer " + name, set,
         RivalSketch::Kind::Reducer});
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    add(compress::dtype_name(dtype), [dtype](const RunOptions& o) {
      const bool is_configured =
          !compress::compresses(o.reducer) && compress::plain_dtype(o.reducer) == dtype;
      return is_configured ? ddp(o)
                           : joined(
                                 {ddp(o),
                                  {"reducer.name=plain",
                                   std::string("reducer.dtype=") + compress::dtype_name(dtype)}});
    });
  }
  for (const compress::Scheme* scheme : compress::schemes()) {
    const std::string name = scheme->name;
    if (scheme->compresses && name != "powersgd") {
      add(name, [name](const RunOptions& o) { return joined({ddp(o), {"reducer.name=" + name}}); });
    }
  }
  return all;
}

std::vector<RivalSketch> all_sketches() {
  // The outer learning rate and interval of MuLoCo's authors, which outer() sets, are not the best
  // in runs of minutes (docs/results/compression.md).
  const std::vector<Sets> muloco_starts = {{"method.outer.lr=0.7", "method.sync_every=10"}};
  std::vector<RivalSketch> all = {
      {"ddp", "the large network, all gradients averaged, as configured", ddp},
      {"ddp_muon", "the large network, all gradients averaged, with Muon", ddp_muon},
      {"powersgd",
       "the large network, gradients as products of rank 4, the optimizer as "
       "configured",
       powersgd},
      {"muloco_2bit", "the large network, Muon on each worker, changes in 2 bits (MuLoCo)", muloco,
       RivalSketch::Kind::Usual, muloco_starts},
      {"sparseloco",
       "the large network, AdamW on each worker, the largest changes in 2 bits "
       "(SparseLoCo)",
       sparseloco},
      {"diloco", "the large network, AdamW on each worker, changes in bf16 (DiLoCo)",
       [](const RunOptions& o) {
         return joined({outer("20"), adamw(o)});
       },
       RivalSketch::Kind::Rare},
      {"local_sgd",
       "the large network, as configured on each worker, averaged every 10 "
       "steps (local SGD)",
       [](const RunOptions&) {
         return Sets{
             "method.name=local-sgd", "method.warmup_steps=10 %", "method.sync_every=10",
             "method.average=params"};
       },
       RivalSketch::Kind::Rare},
      {"ab", "AB-training as configured", [](const RunOptions&) { return Sets{"method.name=ab"}; }},
      {"ab_recipe",
       "AB-training by the standard recipe: each worker trains both factors, Muon, moments "
       "carried, "
       "ranks annealed, 2 bits",
       ab_recipe},
      {"small_ddp",
       "a dense network of AB-training's size, all gradients averaged, as "
       "configured",
       ddp, RivalSketch::Kind::Small},
      {"small_ddp_int4",
       "a dense network of AB-training's size, all gradients averaged in 4 bits with error "
       "feedback, as configured",
       [](const RunOptions& o) {
         return joined({ddp(o), {"reducer.name=int4"}});
       },
       RivalSketch::Kind::Small},
      {"small_ddp_muon",
       "a dense network of AB-training's size, all gradients averaged, with "
       "Muon",
       ddp_muon, RivalSketch::Kind::Small},
      {"small_powersgd",
       "a dense network of AB-training's size, gradients as products of rank "
       "4, the optimizer as configured",
       powersgd, RivalSketch::Kind::Small},
      {"small_powersgd_muon",
       "a dense network of AB-training's size, gradients as products of rank "
       "4, with Muon",
       [](const RunOptions& o) {
         return joined({powersgd(o), muon(o)});
       },
       RivalSketch::Kind::Small},
      {"small_muloco_2bit",
       "a dense network of AB-training's size, Muon on each worker, changes in "
       "2 bits",
       muloco, RivalSketch::Kind::Small, muloco_starts},
      {"small_muloco_ab_bytes",
       "a dense network of AB-training's size, Muon on each worker, changes in "
       "2 bits as often as AB-training's bytes allow",
       muloco,
       RivalSketch::Kind::Small,
       {{"method.outer.lr=0.7"}},
       true},
      {"small_diloco_2bit",
       "a dense network of AB-training's size, AdamW on each worker, changes "
       "in 2 bits",
       [](const RunOptions& o) { return two_bits(adamw(o)); }, RivalSketch::Kind::Small},
  };
  for (const std::vector<RivalSketch>& more : {tuning_sketches(), reducer_sketches()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

Sets joined(std::initializer_list<Sets> parts) {
  Sets all;
  for (const Sets& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<std::string> rival_names() {
  return names_in(rival_sketches());
}

std::vector<Sets> moves_of(const RivalSketch& sketch, const RunOptions& o) {
  const auto rate = [&](const char* by) {
    Sets sets{formatted("optimizer.lr={}", by)};
    if (o.optimizer.name == "muon") {
      sets.push_back(formatted("optimizer.other_lr={}", by));
    }
    return sets;
  };
  std::vector<Sets> all = {{}};
  all.insert(all.end(), sketch.starts.begin(), sketch.starts.end());
  all.insert(
      all.end(), {rate("x 2"),
                  rate("x 0.5"),
                  {"optimizer.weight_decay=0"},
                  {"optimizer.weight_decay=0.1"},
                  {"optimizer.weight_decay=x 2"}});
  const bool is_ab = methods::kind_of(o.method).factors_weights;
  const bool has_interval = o.method.name == "diloco" || o.method.name == "local-sgd" || is_ab;
  if (has_interval && !sketch.sends_as_ab) {
    all.insert(all.end(), {{"method.sync_every=x 2"}, {"method.sync_every=x 0.5"}});
  }
  if (o.method.outer.name || o.method.name == "diloco") {
    all.insert(all.end(), {{"method.outer.lr=1"}, {"method.outer.lr=0.7"}});
  }
  return all;
}

const std::vector<RivalSketch>& rival_sketches() {
  static const std::vector<RivalSketch> all = all_sketches();
  return all;
}

}  // namespace abtrain::sweep
