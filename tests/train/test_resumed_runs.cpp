// Runs that go on from a checkpoint end with the bits of those that were never
// interrupted: what every method, reducer, optimizer and order keeps.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/named.h"
#include "compress/schemes.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

struct ResumedCase {
  const char* name;
  std::vector<std::string> sets;
};

void PrintTo(const ResumedCase& c, std::ostream* out) {
  *out << c.name;
}

class ResumedRun : public ::testing::TestWithParam<ResumedCase> {};

TEST_P(ResumedRun, HasTheSameBits) {
  std::vector<std::string> sets = {
      "workers=2",           "model.hidden=[24,20]",     "data.batch_size=8",
      "train.steps=60",      "method.group_size=1",      "method.warmup_steps=6",
      "method.sync_every=9", "method.full_rank_steps=2", "method.rank={rule: fixed, rank: 5}",
      "optimizer.lr=5e-3",   "schedule.warmup_steps=4",  "train.threads=1",
      "train.timeout=60",    "evaluate.every=25",        "checkpoint.every=10"};
  const std::vector<std::string>& own = GetParam().sets;
  sets.insert(sets.end(), own.begin(), own.end());
  const config::RunOptions o =
      config::read_config(ABTRAIN_SOURCE_DIR "/configs/fashion_mnist_mlp.yaml", sets);
  // Of 8 images a batch: 13 units for each of two workers.
  const SavingRun run(o, testing::toy_dataset(208));
  for (const std::int64_t step : {20, 50}) {
    SCOPED_TRACE(step);
    run.expect_whole(run.go_on(step));
  }
}

std::vector<ResumedCase> resumed_cases() {
  std::vector<ResumedCase> cases = {
      {"ddp", {"method.name=ddp", "optimizer={name: sgd, momentum: 0.9}"}},
      {"unequal_batches",
       {"workers=4", "method.group_size=2", "balance=[1, 0.3, 1, 2]", "train.accumulate=2"}},
      {"groups", {"workers=4", "method.group_size=2"}},
      {"muon", {"workers=4", "method.group_size=2", "optimizer.name=muon"}},
      {"uncut", {"method.cut_first=false", "train.accumulate=2"}},
      {"adapters",
       {"method.warmup_steps=0", "method.full_rank_steps=0", "method.remainder=freeze"}},
      {"adapters_alternate",
       {"workers=4", "method.group_size=2", "method.warmup_steps=0", "method.full_rank_steps=0",
        "method.remainder=freeze", "method.start=zero", "method.alpha=10", "method.roles=alternate",
        "method.moments=carry", "model.frozen=['*', '!fc3']",
        "method.outer={name: nesterov, wire: {name: int2}}"}},
      {"adapters_in_blocks",
       {"method.warmup_steps=0", "method.full_rank_steps=0", "method.remainder=freeze",
        "method.sync=full", "method.blocks=2", "method.rank.rank=4", "train.precision=bf16"}},
      {"frozen", {"method.name=diloco", "model.frozen=[fc1]"}},
      {"by_class", {"data.shards=by-class", "workers=4", "method.group_size=2"}},
      {"both", {"method.trains=both", "workers=3", "method.group_size=1", "method.moments=carry"}},
      {"both_coded",
       {"method.trains=both", "workers=4", "method.group_size=2", "method.full_rank_steps=0",
        "method.outer={name: nesterov, wire: {name: int4}}", "method.moments=carry"}},
      {"both_annealed",  // layers are dense at first
       {"method.trains=both", "workers=2", "method.group_size=1", "method.full_rank_steps=0",
        "method.outer.wire.name=int2", "method.moments=carry", "optimizer.name=muon",
        "method.rank={rule: budget, ratio: 4}", "method.anneal_from=1", "method.anneal_steps=20"}},
      {"both_together",
       {"method.trains=both", "workers=2", "method.group_size=2", "optimizer.name=muon"}},
      {"blocks",
       {"method.trains=both", "workers=2", "method.group_size=1", "method.full_rank_steps=0",
        "method.blocks=4", "method.moments=carry", "method.rank={rule: budget, ratio: 4}",
        "method.anneal_steps=20", "optimizer.name=muon",
        "method.outer={name: nesterov, wire: {name: int4}}"}},
      {"blocks_of_roles",
       {"workers=4", "method.group_size=2", "method.blocks=2", "method.moments=carry"}},
      {"only_b", {"method.sync=only-b", "method.full_rank_steps=0"}},
      {"alone", {"method.sync=full", "method.warmup_steps=14"}},
      {"budget", {"method.rank={rule: budget, ratio: 4}"}},
      {"energy", {"method.rank={rule: energy, keep: 0.6}", "method.dense_share=0.3"}},
      {"carried",
       {"workers=4", "method.group_size=2", "method.full_rank_steps=0", "method.moments=carry",
        "method.rank={rule: budget, ratio: 4, floor: 0.7}", "method.anneal_steps=20"}},
      {"coded",
       {"workers=4", "method.full_rank_steps=0",
        "method.outer={name: nesterov, wire: {name: int2, error_decay: 0.9}}",
        "optimizer.name=muon"}},
      {"only_b_coded",
       {"method.sync=only-b", "method.full_rank_steps=0",
        "method.outer={name: sgd, wire: {name: sparseloco}}"}},
      {"local_sgd",
       {"method.name=local-sgd", "workers=3", "method.average=params+moments",
        "reducer.dtype=bf16"}},
      // Each save finds a fragment under way.
      {"diloco",
       {"method.name=diloco", "method.sync_every=10", "method.fragments=2", "method.delay=4",
        "method.warmup_steps=3"}},
      {"coded_fragments",
       {"method.name=diloco", "method.sync_every=10", "method.fragments=2", "workers=3",
        "method.delay=4", "method.outer.wire.name=int4"}},
      {"sparse",
       {"method.name=local-sgd", "workers=3", "method.sync_every=3",
        "reducer={name: topk, min_numel: 64}"}},
      {"compressed",
       {"method.name=diloco", "method.sync_every=10", "method.fragments=2", "method.delay=4",
        "reducer={name: thc, min_numel: 64, dense_steps: 12}"}},
      {"mirror",
       {"method.name=ddp", "reducer.name=threshold",
        "optimizer={name: qcmd-adagrad, l1: 1e-3, lr: 0.02}"}},
      {"dual",
       {"method.name=ddp", "reducer.name=ternary", "workers=3",
        "optimizer={name: qrda-adagrad, l1: 1e-3, lr: 0.02}", "schedule.name=constant"}},
      // Some saves are within a pair of units.
      {"coordinated", {"method.name=ddp", "order={name: cd-grab, wire: int8}"}},
      {"ordered_groups",
       {"workers=4", "method.group_size=2", "data.batch_size=4",
        "order={name: cd-grab, wire: int8}"}},
      {"centered", {"method.name=local-sgd", "order.name=grab"}},
      {"examples", {"method.name=ddp", "order={name: cd-grab, unit: example}"}},
      {"examples_alone", {"train.accumulate=2", "order={name: id-grab, unit: example}"}}};
  std::vector<std::vector<std::string>> reducers = {
      {"hylo", "reducer.transport=a2a"},
      {"threshold", "reducer.error_feedback=true"},
      {"threshold", "reducer.transport=int8"}};
  for (const std::string& name : names_in(compress::schemes())) {
    reducers.push_back({name});
  }
  for (const auto& reducer : reducers) {
    std::vector<std::string> sets = {
        "workers=3",
        "method.name=ddp",
        "reducer.min_numel=64",
        "reducer.bucket_mb=0.001",
        "reducer.block=64",
        "reducer.bits=4",
        "reducer.dense_steps=2",
        "optimizer={name: sgd, momentum: 0.9}",
        "reducer.name=" + reducer[0]};
    sets.insert(sets.end(), reducer.begin() + 1, reducer.end());
    cases.push_back({"reducer", std::move(sets)});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    All, ResumedRun, ::testing::ValuesIn(resumed_cases()),
    [](const auto& test) { return formatted("{}_{}", test.param.name, test.index); });

}  // namespace
}  // namespace abtrain::train
