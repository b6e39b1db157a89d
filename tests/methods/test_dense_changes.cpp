// What AB-training sends of the changes of dense parameters.
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "local_workers.h"
#include "methods/ab/ab.h"

namespace abtrain::methods {
namespace {

using testing::ab_run;
using testing::both_run;
using testing::LocalRun;
using testing::LocalWorker;
using testing::with_workers;

// What a flat tensor like the worker's block holds of the parameters that are never
// factored: the biases and the last layer of the network.
at::Tensor never_factored(LocalWorker& w, const at::Tensor& flat) {
  const std::vector<LayerRank> layers = w.method->layers();
  const optim::ParameterBlock& block = w.method->block();
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    const bool may_be = std::ranges::any_of(layers, [&](const LayerRank& layer) {
      return block.parameters()[i].name.starts_with(layer.name + ".weight");
    });
    if (!may_be) {
      parts.push_back(flat.slice(0, block.offset(i), block.offset(i + 1)));
    }
  }
  return at::cat(parts);
}

at::Tensor never_factored(LocalWorker& w) {
  return never_factored(w, w.method->block().values());
}

// What worker `rank`, alone in its group, adds to them in a step.
at::Tensor own_noise(LocalWorker& w, int rank, std::int64_t t) {
  return never_factored(w, LocalWorker::noise(99 + rank, t, 0, w.method->block().numel()));
}

// Where all train all, codes leave out parts of the dense parameters' changes, also
// where a weight that was dense is factored; the last synchronization, which has none,
// sends them.
TEST(DenseChanges, WhatCodesLeaveOutIsSentInTheEnd) {
  for (const bool anneals : {false, true}) {
    LocalRun run = both_run(4);
    run.method.outer.wire.name = "int2";
    run.method.outer.wire.dtype = at::kFloat;  // of the last synchronization
    run.method.rank = {.rule = linalg::RankRuleName::Ratio, .ratio = 4};
    run.method.anneal_from = 0.9;  // dense
    run.method.anneal_steps = Duration::steps(anneals ? 8 : 0);
    run.steps = 14;
    with_workers(3, run, [&](LocalWorker& w, int) {
      w.method->start();
      at::Tensor expected = never_factored(w).to(at::kDouble);
      std::int64_t dense = 0;  // steps in which a weight was that is factored in the end
      for (std::int64_t t = 0; t < run.steps; ++t) {
        dense += w.method->layers()[0].rank == 0 ? 1 : 0;
        for (int r = 0; r < 3; ++r) {
          expected.add_(own_noise(w, r, t), 1.0 / 3);
        }
        w.go(t, t + 1);
      }
      EXPECT_EQ(dense > 0, anneals);
      EXPECT_GT(w.method->layers()[0].rank, 0);
      w.method->finish(run.steps);
      EXPECT_TRUE(at::allclose(never_factored(w).to(at::kDouble), expected, 0, 1e-6));
    });
  }
}

// A narrow dtype rounds what has changed since the last average, not since the
// last decomposition.
TEST(DenseChanges, AnAverageInPlaceSendsTheChangeSinceTheLast) {
  LocalRun run = both_run(2);
  run.method.outer.wire.dtype = at::kBFloat16;
  run.steps = 60;
  with_workers(2, run, [&](LocalWorker& w, int) {
    w.method->start();
    w.go(0, 56);
    const at::Tensor before = never_factored(w);
    at::Tensor mean = at::zeros_like(before);
    at::Tensor size = at::zeros_like(before);
    for (int r = 0; r < 2; ++r) {
      const at::Tensor change = own_noise(w, r, 56) + own_noise(w, r, 57);
      mean += change / 2;
      size += change.abs();
    }
    w.go(56, 58);
    const at::Tensor error = (never_factored(w) - before - mean).abs();
    EXPECT_TRUE((error <= size / 256 + 1e-6).all().item<bool>());
    EXPECT_GT(error.max().item<float>(), 1e-6);  // it is rounded
  });
}

// Three workers' states, of which one trains A, for two workers. With codes, what they left out
// is in the mean.
TEST(DenseChanges, GoesOnWithFewerWorkers) {
  for (const bool both : {false, true}) {
    LocalRun run = both ? both_run(4) : ab_run(2, 5, 2);
    run.steps = 14;
    if (both) {
      run.method.outer.wire.name = "int2";
      run.method.outer.wire.dtype = at::kFloat;
    }
    constexpr std::int64_t kAt = 5;
    std::vector<state::State> states(3);
    at::Tensor values;  // their mean
    std::mutex mutex;
    with_workers(3, run, [&](LocalWorker& w, int rank) {
      w.method->start();
      at::Tensor all = never_factored(w).to(at::kDouble);
      w.go(0, kAt);
      for (std::int64_t t = 0; both && t < kAt; ++t) {
        all.add_(own_noise(w, rank, t));
      }
      states[static_cast<std::size_t>(rank)] = w.save();
      const std::lock_guard lock(mutex);
      const at::Tensor share = (both ? all : never_factored(w).to(at::kDouble)) / 3;
      values = values.defined() ? values + share : share;
    });
    with_workers(2, run, [&](LocalWorker& w, int) {
      w.regroup(states, kAt);
      EXPECT_TRUE(at::allclose(never_factored(w).to(at::kDouble), values, 0, 1e-6));
      // Where bases change, the rate climbs again.
      EXPECT_EQ(w.method->learning_rate(kAt) < 2e-5, !both);
      at::Tensor expected = values.clone();
      for (std::int64_t t = kAt; both && t < run.steps; ++t) {
        expected.add_(own_noise(w, 0, t), 0.5);
        expected.add_(own_noise(w, 1, t), 0.5);
      }
      w.go(kAt, run.steps);
      w.method->finish(run.steps);
      if (both) {  // nothing is sent twice
        EXPECT_TRUE(at::allclose(never_factored(w).to(at::kDouble), expected, 0, 1e-6));
      }
    });
  }
}

}  // namespace
}  // namespace abtrain::methods
