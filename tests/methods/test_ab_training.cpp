// AB-training without data, against what its steps should add up to.
#include "methods/ab/ab.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <map>

#include "base/error.h"
#include "local_workers.h"

namespace abtrain::methods {
namespace {

using testing::ab_run;
using testing::both_run;
using testing::LocalRun;
using testing::LocalWorker;
using testing::with_batches;
using testing::with_workers;

// Without a stale part in between, a mean over workers is one over their examples.
TEST(AbTraining, AveragesWeighByExamples) {
  const std::vector<std::int64_t> batches = {9, 3, 4};
  LocalRun run = with_batches(ab_run(6, 5, 2), batches);
  run.model = "resnet18";
  run.width = 0.1;
  with_workers(3, run, [&](LocalWorker& w, int) {
    const auto mean_noise = [&](std::int64_t from, std::int64_t to, int what, std::int64_t numel) {
      at::Tensor mean = at::zeros({numel}, at::kDouble);
      for (std::int64_t t = from; t < to; ++t) {
        for (int r = 0; r < 3; ++r) {
          const auto batch = static_cast<double>(batches[static_cast<std::size_t>(r)]);
          mean.add_(LocalWorker::noise(r, t, what, numel), batch / 16);
        }
      }
      return mean;
    };
    const auto expect_statistics = [&](std::int64_t steps) {
      for (const nn::NamedBuffer& b : w.model->buffers()) {
        const at::Tensor start = at::full({b.tensor->numel()}, b.name.ends_with("var") ? 1.0 : 0.0);
        EXPECT_TRUE(at::allclose(
            b.tensor->flatten().to(at::kDouble), start + mean_noise(0, steps, 2, b.tensor->numel()),
            0, 1e-5))
            << b.name << " after " << steps;
      }
    };
    w.method->start();
    w.go(0, 6);
    expect_statistics(6);
    w.go(6, 11);
    expect_statistics(11);
  });
}

// Only the cut of untrained weights is scaled.
TEST(AbTraining, LaterCutsKeepTheirScale) {
  std::vector<at::Tensor> kept[2];
  for (const bool keeps : {false, true}) {
    LocalRun run = ab_run(2, 4, 1);
    run.method.keep_variance = keeps;
    with_workers(2, run, [&](LocalWorker& w, int rank) {
      w.method->start();
      w.go(0, run.steps);
      if (rank == 0) {
        kept[keeps] = w.all();
      }
    });
  }
  EXPECT_TRUE(at::equal(kept[0][0], kept[1][0]));
}

// A ramp begins after each switch of phase, and averages of factors are none.
TEST(AbTraining, RatesClimbAfterEachSwitch) {
  for (const bool both : {false, true}) {
    for (const RampKind kind : {RampKind::Linear, RampKind::Reference}) {
      for (const std::int64_t warmup : {0, 3}) {
        LocalRun run = both ? both_run(5) : ab_run(warmup, 5, 2);
        run.method.warmup_steps = Duration::steps(static_cast<double>(warmup));
        run.method.ramp = kind;
        run.method.rebound_steps = Duration::steps(7);
        with_workers(2, run, [&](LocalWorker& w, int) {
          const RunLength length{run.steps, run.steps};
          const optim::Schedule schedule(optim::ScheduleOptions{}, 0.1, length);
          w.method->start();
          std::int64_t switched = -1;
          for (std::int64_t t = 0; t < run.steps; ++t) {
            // After the warm-up, and without `both` every 5 steps and 2 after those.
            const std::int64_t since = t - warmup;
            if (since == 0 || (!both && since >= 5 && (since % 5 == 0 || since % 5 == 2))) {
              switched = t;
            }
            double expected = schedule.at(t);
            const std::int64_t k = t - switched + 1;
            if (switched >= 0 && k <= 7) {
              const double peak = schedule.at(switched);
              expected = kind == RampKind::Linear
                             ? 1e-5 + (expected - 1e-5) * static_cast<double>(k - 1) / 7
                         : k == 1 ? 1e-5
                                  : std::min(expected, static_cast<double>(k) * (peak - 1e-5) / 7);
            }
            EXPECT_NEAR(w.method->learning_rate(t), expected, 1e-12) << both << " step " << t;
            w.go(t, t + 1);
          }
        });
      }
    }
  }
}

// Moments and the factor that is not trained belong to what replicas share.
TEST(AbTraining, ReplicasThatDifferAreNoticed) {
  LocalRun run = ab_run(0, 5, 2);
  run.method.group_size = 2;
  with_workers(4, run, [&](LocalWorker& w, int rank) {
    w.method->start();
    w.method->check_replicas(0);
    const at::NoGradGuard no_grad;
    const nn::Weight& weight = *w.model->weights()[0].weight;
    for (const at::Tensor& shared :
         {w.method->block().values(), w.method->block().moments(), weight.inner.detach(),
          weight.outer.detach()}) {
      at::Tensor first = shared.select(0, 0);
      const at::Tensor kept = first.clone();
      if (rank % 2 == 1) {
        first += 1;
      }
      EXPECT_THROW(w.method->check_replicas(0), Error);
      first.copy_(kept);
      w.method->check_replicas(0);
    }
  });
}

TEST(AbTraining, SaysWhatHappensWhen) {
  LocalRun run = ab_run(3, 5, 2);
  run.steps = 11;
  with_workers(2, run, [&](LocalWorker& w, int) {
    w.method->start();
    w.go(0, 2);
    EXPECT_GT(w.method->costs().collective, 0);
    w.go(2, run.steps);
    w.method->finish(run.steps);
    using Events = std::vector<std::pair<std::int64_t, std::string>>;
    EXPECT_EQ(
        w.observer.events,
        (Events{{3, "decomposed"}, {8, "only-learned"}, {10, "decomposed"}, {11, "only-learned"}}));
    ASSERT_EQ(w.observer.layers.size(), 3U);
    for (const LayerRank& layer : w.observer.layers) {
      EXPECT_EQ(layer.rank, 5);
      // What it was chosen from: all values of a dense weight.
      ASSERT_EQ(std::ssize(layer.values.index), layer.n);
      EXPECT_GT(layer.values.value[0], 0);
    }
  });
}

// Each moment as what it is a mean of; the steps that they count go on too.
TEST(AbTraining, CarriesMomentsOfGradientsAndOfTheirSquares) {
  for (const FactorMoments moments : {FactorMoments::Zero, FactorMoments::Carry}) {
    LocalRun run = ab_run(4, 9, 0);
    run.method.moments = moments;
    with_workers(2, run, [&](LocalWorker& w, int) {
      const at::NoGradGuard no_grad;
      w.method->start();
      w.go(0, 3);
      auto& block = w.method->block();
      block.moments().fill_(1);
      for (at::Tensor steps : block.steps()) {
        steps.fill_(7);
      }
      // The step that ends in the decomposition, without one of its own.
      w.method->reduce_gradients(3);
      w.method->after_step(4);
      const bool carries = moments == FactorMoments::Carry;
      int factors = 0;
      for (std::size_t i = 0; i < block.parameters().size(); ++i) {
        const bool is_factor = block.parameters()[i].is_factor;
        factors += is_factor;
        EXPECT_EQ(block.steps()[i].item<float>(), is_factor && !carries ? 0 : 7);
        if (is_factor) {
          const at::Tensor& first = block.moment_views(0)[i];
          const at::Tensor& second = block.moment_views(1)[i];
          EXPECT_EQ(first.lt(0).any().item<bool>(), carries);
          EXPECT_EQ(second.gt(0).all().item<bool>(), carries);
          EXPECT_FALSE(second.lt(0).any().item<bool>());
        }
      }
      EXPECT_EQ(factors, 3);
    });
  }
}

// A merged model has the mean over examples, and its making changes nothing.
TEST(AbTraining, MergingTakesNoOuterStep) {
  const std::vector<std::int64_t> batches = {9, 3, 4};
  LocalRun run = with_batches(ab_run(0, 4, 0), batches);
  run.method.outer.name = OuterRule::Nesterov;
  std::vector<at::Tensor> ends[2];
  for (const bool merges : {false, true}) {
    with_workers(3, run, [&](LocalWorker& w, int rank) {
      w.method->start();
      for (std::int64_t t = 0; t < 10; ++t) {
        w.go(t, t + 1);
        if (!merges) {
          continue;
        }
        auto merged = nn::make_model(w.model_options(), LocalWorker::shape());
        w.method->merge_into(*merged);
        optim::ParameterBlock& block = w.method->block();
        const std::size_t i = block.index_of("fc1.bias");
        at::Tensor mean = block.values().slice(0, block.offset(i), block.offset(i + 1)) *
                          (static_cast<double>(3 * batches[static_cast<std::size_t>(rank)]) / 16);
        w.world().all_reduce(mean, comm::ReduceOp::Mean, comm::Purpose::Metrics).wait();
        const at::Tensor bias = *merged->parameters()[0].tensor;  // of fc1
        EXPECT_TRUE(at::allclose(bias, mean, 0, 1e-6));
      }
      if (rank == 0) {
        ends[merges] = w.all();
      }
    });
  }
  for (std::size_t i = 0; i < ends[0].size(); ++i) {
    EXPECT_TRUE(at::equal(ends[0][i], ends[1][i]));
  }
}

// A run that ends where a synchronization is due sends all of its changes, and what the codes of
// earlier ones left out: the model is the mean of what the workers did, without moments.
TEST(AbTraining, TheEndLeavesNothingUnsent) {
  LocalRun run = both_run(5);
  run.steps = 20;
  run.method.outer.wire.name = "int2";
  run.method.outer.wire.dtype = at::kFloat;
  with_workers(2, run, [&](LocalWorker& w, int) {
    w.method->start();
    at::Tensor expected = w.method->block().values().clone();
    const std::int64_t numel = expected.numel();
    for (std::int64_t t = 0; t < run.steps; ++t) {
      for (const int rank : {0, 1}) {
        expected.add_(LocalWorker::noise(rank + 99, t, 0, numel), 0.5);
      }
    }
    w.go(0, run.steps);
    w.method->finish(run.steps);
    EXPECT_TRUE(at::allclose(w.method->block().values(), expected, 0, 1e-5));
    for (const optim::ParameterRef& p : w.method->block().parameters()) {
      EXPECT_EQ(p.halves_decay, p.is_factor) << p.name;
    }
    EXPECT_EQ(w.observer.events.size(), 5U);  // the cut, three averages, and the end
    EXPECT_EQ(w.observer.events.back().first, run.steps);
  });
}

// Wherever a worker is lost, the others can save what they have and go on.
TEST(AbTraining, WhoeverIsLeftGoesOn) {
  LocalRun compressing = ab_run(3, 4, 2);
  set_option(compressing.reducer, "name", "powersgd");
  LocalRun coded = both_run(4);
  coded.method.outer.name = OuterRule::Nesterov;
  coded.method.outer.wire.name = "int2";
  for (LocalRun run : {ab_run(3, 4, 2), compressing, both_run(4), coded}) {
    run.steps = 12;
    for (std::int64_t t = 0; t < run.steps; ++t) {
      std::vector<state::State> states(2);
      std::latch trained(3);
      const auto lose = [&](LocalWorker& w, int rank) {
        w.method->start();
        w.go(0, t);
        w.train(t);
        trained.arrive_and_wait();
        if (rank == 2) {
          throw Error(ErrorKind::Io, "lost");
        }
        const state::State before = w.save();
        bool is_lost = false;
        try {
          const at::NoGradGuard no_grad;
          w.method->after_step(t + 1);
        } catch (const Error&) {
          is_lost = true;  // in a collective
        }
        state::State& after = states[static_cast<std::size_t>(rank)] = w.survive();
        for (const auto& [name, tensor] : before.replicas) {
          EXPECT_TRUE(!is_lost || at::equal(tensor, after.replicas.at(name))) << name;
        }
      };
      EXPECT_THROW(with_workers(3, run, lose), Error);
      with_workers(2, run, [&](LocalWorker& w, int) {
        w.regroup(states, t + 1);
        w.go(t + 1, run.steps);
        w.method->finish(run.steps);
        EXPECT_TRUE(w.method->replicas_agree(run.steps)) << "lost after " << t << " steps";
        for (const at::Tensor& tensor : w.all()) {
          EXPECT_TRUE(at::isfinite(tensor).all().item<bool>());
        }
      });
    }
  }
}

// Also one that is the largest that saves something.
TEST(AbTraining, FirstRanksAreLoadedAsTheyWere) {
  LocalRun run = ab_run(0, 5, 2);
  run.method.rank.rank = 10;
  with_workers(2, run, [&](LocalWorker& w, int) {
    w.method->start();
    state::State state = w.save();
    LocalWorker loaded(run, w.world());
    loaded.load(state);
    EXPECT_EQ(loaded.method->layers()[1].first_rank, 10);  // fc2, 24 x 20
  });
}

}  // namespace
}  // namespace abtrain::methods
