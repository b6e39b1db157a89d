// The state of training with local steps: saved, gone on with, regrouped.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "local_workers.h"

namespace abtrain::methods {
namespace {

using testing::diloco;
using testing::local_sgd;
using testing::LocalCase;
using testing::LocalRun;
using testing::LocalWorker;
using testing::with_dtype;
using testing::with_workers;

// What is saved anywhere on the way, a fragment under way or not, goes on to
// the bits of a run that never saved.
class LocalState : public ::testing::TestWithParam<LocalCase> {};

TEST_P(LocalState, GoesOnToTheSameBits) {
  const LocalCase& c = GetParam();
  with_workers(c.workers, c.run, [&](LocalWorker& w, int) {
    w.method->start();
    w.go(0, c.run.steps);
    w.method->finish(c.run.steps);
    const auto wanted = w.all();
    const auto expect_wanted = [&](LocalWorker& other, std::int64_t t) {
      const auto seen = other.all();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(at::equal(seen[i], wanted[i])) << "saved after " << t << " steps: tensor " << i;
      }
    };
    // The same communicator carries the other runs, one after another.
    auto& world = *w.method->now().replicas;
    LocalWorker saving(c.run, world);
    saving.method->start();
    for (std::int64_t t = 0; t < c.run.steps; ++t) {
      saving.go(t, t + 1);
      state::State state = saving.save();
      LocalWorker resumed(c.run, world);
      resumed.load(state);
      const auto now = saving.all();
      const auto loaded = resumed.all();
      for (std::size_t i = 0; i < now.size(); ++i) {
        EXPECT_TRUE(at::equal(loaded[i], now[i]));
      }
      EXPECT_EQ(resumed.method->replicas_agree(t + 1), saving.method->replicas_agree(t + 1));
      resumed.go(t + 1, c.run.steps);
      resumed.method->finish(c.run.steps);
      expect_wanted(resumed, t + 1);
    }
    saving.method->finish(c.run.steps);
    expect_wanted(saving, -1);
  });
}

LocalCase with_statistics(std::string name, LocalRun run) {
  run.model = "resnet18";
  run.steps = 12;
  return {std::move(name), 2, run};
}

LocalRun with_reducer(LocalRun run, const std::string& name) {
  run.reducer.name = name;
  run.reducer.dtype.reset();
  run.reducer.min_numel = 64;
  run.reducer.block = 64;
  run.reducer.bits = 4;
  run.reducer.dense_steps = 5;
  return run;
}

LocalRun with_moments(LocalRun run) {
  run.method.average = methods::Averaged::ParamsAndMoments;
  return run;
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalState,
    ::testing::Values(
        LocalCase{"local_sgd", 2, with_moments(local_sgd(3, 4))},
        LocalCase{"diloco_fp16", 2, with_dtype(diloco(2, 5, 1, 3), "fp16")},
        LocalCase{"streaming", 3, diloco(2, 9, 3, 2, 0.5)},
        LocalCase{"topk", 2, with_reducer(local_sgd(2, 3), "topk")},
        LocalCase{"thc", 3, with_reducer(diloco(0, 4), "thc")},
        LocalCase{"powersgd", 2, with_reducer(diloco(2, 4), "powersgd")},
        LocalCase{"hylo_streaming", 2, with_reducer(diloco(2, 9, 3, 2, 0.5), "hylo")},
        with_statistics("statistics_under_way", diloco(1, 4, 2, 1))),
    [](const auto& test) { return test.param.name; });

// Four workers' state for two: the mean of parameters and moments, and the
// outer state as it was.
TEST(LocalTraining, GoesOnWithFewerWorkers) {
  struct Regroup {
    LocalRun run;
    std::int64_t at;
  };
  for (const Regroup& c :
       {Regroup{local_sgd(2, 5), 9}, Regroup{diloco(2, 6), 10},
        Regroup{diloco(2, 6, 2, 2), 10},  // nothing under way
        Regroup{diloco(2, 6, 2, 2), 12},  // a fragment
        Regroup{diloco(20, 6), 10}}) {    // in the warm-up
    std::vector<state::State> states(4);
    std::vector<std::vector<at::Tensor>> old(4);
    std::vector<at::Tensor> x(4), velocity(4);
    with_workers(4, c.run, [&](LocalWorker& w, int rank) {
      const auto r = static_cast<std::size_t>(rank);
      w.method->start();
      w.go(0, c.at);
      states[r] = w.save();
      // Where a fragment travels: as its end leaves it.
      old[r] = w.all();
    });
    at::Tensor values = at::zeros_like(old[0][0]).to(at::kDouble);
    at::Tensor moments = at::zeros_like(old[0][1]).to(at::kDouble);
    for (const auto& tensors : old) {
      values += tensors[0] / 4.0;
      moments += tensors[1] / 4.0;
    }
    const bool warm = static_cast<double>(c.at) < c.run.method.warmup_steps.value;
    EXPECT_EQ(states[0].replicas.count("x"), warm ? 0U : 1U);
    const bool flies = !warm && states[0].values->at("local.fragment") >= 0;
    const at::Tensor start = warm ? at::Tensor() : states[0].replicas["x"];
    const at::Tensor moving = warm ? at::Tensor() : states[0].replicas["velocity"];
    with_workers(2, c.run, [&](LocalWorker& w, int rank) {
      w.regroup(states, c.at);
      EXPECT_EQ(w.method->now().phase, warm ? methods::Phase::Full : methods::Phase::Local);
      w.method->check_replicas(c.at);
      EXPECT_TRUE(w.method->replicas_agree(c.at));
      const at::Tensor now = w.method->block().values();
      if (!flies) {
        EXPECT_TRUE(at::allclose(now.to(at::kDouble), values, 0, 1e-6));
      } else {
        EXPECT_FALSE(at::allclose(now.to(at::kDouble), values, 0, 1e-6));
      }
      EXPECT_TRUE(at::allclose(w.method->block().moments().to(at::kDouble), moments, 0, 1e-6));
      if (warm) {
        return;
      }
      state::State after = w.save();
      EXPECT_EQ(after.values->at("local.fragment"), -1);
      if (!flies) {
        EXPECT_TRUE(at::equal(after.replicas["x"], start));
        if (moving.numel() > 0) {
          EXPECT_TRUE(at::equal(after.replicas["velocity"], moving));
        }
      } else {
        EXPECT_FALSE(at::equal(after.replicas["x"], start));
      }
      w.go(c.at, c.run.steps);
      w.method->finish(c.run.steps);
      w.method->check_replicas(c.run.steps);
      EXPECT_GE(rank, 0);
    });
  }
}

}  // namespace
}  // namespace abtrain::methods
