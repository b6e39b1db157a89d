// The formulas of docs/methods.md against the meter, to the byte.
#include "methods/traffic_plan.h"

#include <gtest/gtest.h>

#include "comm/run_workers.h"
#include "run/plan.h"
#include "run/trainer.h"
#include "toy_data.h"

namespace abtrain::run {
namespace {

struct Case {
  const char* name;
  int workers;
  const char* group_size;
  const char* sync;
  int warmup, interval, full_rank, steps;
  const char* dtype;
  int local_steps;
  const char* optimizer;
  std::int64_t narrow = 18;  // width of the last layer; 4: it stays dense
  const char* svd = "auto";
};

class Traffic : public ::testing::TestWithParam<Case> {};

TEST_P(Traffic, PlanEqualsMeter) {
  const Case c = GetParam();
  RunOptions o;
  o.workers = c.workers;
  o.data.batch_size = 4;
  o.model.hidden = {24, 20, c.narrow};
  o.method.name = c.name;
  o.method.group_size = c.group_size;
  o.method.sync = c.sync;
  o.method.sync_dtype = std::string(c.dtype) == "bf16" ? "bf16" : "fp32";
  o.method.warmup_steps = Duration::steps(c.warmup);
  o.method.sync_every = Duration::steps(c.interval);
  o.method.full_rank_steps = Duration::steps(c.full_rank);
  o.method.full_phase.sync_every = c.local_steps;
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 5;
  o.method.svd = c.svd;
  o.optimizer.name = c.optimizer;
  o.optimizer.lr = 1e-3;
  o.reducer.dtype = c.dtype;
  o.train.steps = c.steps;
  o.train.threads = 1;
  o.evaluate.every = Duration::steps(0);
  const data::Dataset dataset = testing::toy_dataset(256);

  std::vector<WorkerFigures> figures;
  std::mutex mutex;
  comm::run_workers(c.workers, 60, [&](comm::Communicator& world) {
    TrainResult result =
        train_worker(world, {o, dataset, {}, at::kCPU});
    const std::lock_guard lock(mutex);
    figures = result.workers;
  });

  const RunLength length = run_length(o, dataset.train.size());
  const methods::ModelSizes sizes =
      model_sizes(o, input_shape(dataset))->sizes;
  for (int r = 0; r < c.workers; ++r) {
    const methods::TrafficPlan plan = methods::plan_traffic(
        o.method, o.reducer, sizes, c.workers, r, length);
    const TrafficSplit& seen = figures[static_cast<std::size_t>(r)].traffic;
    EXPECT_EQ(static_cast<double>(plan.total), seen.total()) << "worker " << r;
    EXPECT_EQ(seen.full_phase + seen.ab_phase + seen.switches, seen.total());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Traffic,
    ::testing::Values(
        Case{"ddp", 3, "auto", "only-learned", 0, 9, 2, 5, "fp32", 1, "adamw"},
        Case{"ddp", 4, "auto", "only-learned", 0, 9, 2, 5, "bf16", 1, "sgd"},
        Case{"ab", 1, "1", "only-b", 2, 5, 1, 12, "fp32", 1, "adamw"},
        Case{"ab", 4, "2", "only-learned", 3, 6, 2, 20, "fp32", 1, "adamw"},
        Case{"ab", 4, "1", "only-learned", 3, 6, 0, 20, "bf16", 1, "adamw"},
        Case{"ab", 4, "1", "full", 2, 5, 0, 14, "fp32", 1, "sgd"},
        Case{"ab", 4, "2", "full", 2, 5, 1, 14, "fp32", 1, "sgd"},
        Case{"ab", 6, "3", "with-stale", 0, 4, 1, 9, "fp32", 1, "adamw"},
        Case{"ab", 3, "1", "only-b", 0, 4, 0, 8, "bf16", 1, "sgd"},
        Case{"ab", 8, "2", "only-learned", 4, 7, 3, 25, "fp32", 3, "adamw"},
        Case{"ab", 4, "1", "only-learned", 9, 7, 3, 7, "bf16", 2, "adamw"},
        Case{"ab", 4, "2", "only-learned", 4, 7, 3, 25, "fp16", 3, "adamw"},
        Case{"ab", 4, "2", "with-stale", 3, 6, 2, 20, "fp16", 1, "sgd"},
        Case{"ab", 4, "1", "only-learned", 3, 6, 0, 20, "fp32", 1, "adamw", 4},
        Case{"ab", 4, "2", "full", 2, 5, 0, 14, "fp32", 1, "sgd", 4},
        Case{"ab", 2, "1", "only-learned", 2, 6, 2, 14, "fp32", 1, "sgd", 4},
        Case{
            "ab",
            4,
            "2",
            "only-learned",
            3,
            6,
            2,
            20,
            "fp32",
            1,
            "adamw",
            18,
            "randomized"}));

}  // namespace
}  // namespace abtrain::run
