// Compares the planned traffic of a small run with what its workers send.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "methods/method_kind.h"
#include "train/trainer.h"

namespace abtrain::testing {

// A run on toy images that sends nothing but what its training needs.
inline config::RunOptions metered_run(std::int64_t workers) {
  config::RunOptions o;
  o.workers = workers;
  o.data.batch_size = 4;
  o.model.hidden = {24, 20, 18};
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 5;
  o.optimizer.lr = 1e-3;
  o.train.threads = 1;
  o.evaluate.every = Duration::steps(0);
  return o;
}

inline void set_phases(
    config::RunOptions& o, std::int64_t warmup, std::int64_t interval, std::int64_t full_rank) {
  o.method.warmup_steps = Duration::steps(static_cast<double>(warmup));
  o.method.sync_every = Duration::steps(static_cast<double>(interval));
  o.method.full_rank_steps = Duration::steps(static_cast<double>(full_rank));
}

// Trains, and compares what each worker sent with what was planned; with
// `ranks`, by layer name, for a run that has these ranks in all its AB phases.
inline void expect_plan_is_meter(
    const config::RunOptions& o, const data::Dataset& dataset,
    const std::map<std::string, std::int64_t>* ranks = nullptr) {
  const auto workers = static_cast<int>(o.workers);
  const std::vector<train::WorkerFigures> figures =
      train::train_threads({o, dataset, {}, at::kCPU})[0].workers;

  const RunLength length = config::run_length(o, dataset.train.size());
  const methods::ModelSizes sizes = config::model_sizes(o, dataset, ranks)->sizes;
  for (int r = 0; r < workers; ++r) {
    const methods::TrafficPlan plan =
        methods::plan_traffic(config::method_setup(o), length, sizes, r);
    const train::TrafficSplit& seen = figures[static_cast<std::size_t>(r)].traffic;
    EXPECT_EQ(static_cast<double>(plan.total), seen.total()) << "worker " << r;
    EXPECT_EQ(seen.full_phase + seen.ab_phase + seen.switches, seen.total());
  }
}

}  // namespace abtrain::testing
