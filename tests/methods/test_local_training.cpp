// Training with local steps against a re-computation in float64.
#include "methods/local/training.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "local_workers.h"

namespace abtrain::methods {
namespace {

using testing::diloco;
using testing::local_sgd;
using testing::LocalCase;
using testing::LocalRun;
using testing::LocalWorker;
using testing::with_batches;
using testing::with_dtype;
using testing::with_workers;

// All workers at once, in float64, a number at a time where it differs.
class Reference {
 public:
  Reference(const LocalRun& run, int n, LocalWorker& like) : run_(run), n_(n) {
    auto& block = like.method->block();
    x_ = block.values().to(at::kDouble);
    v_ = at::zeros_like(x_);
    locals_.assign(static_cast<std::size_t>(n), x_);
    for (at::Tensor& local : locals_) {
      local = local.clone();
    }
    // Layer of each number, by name; its fragment by the layer.
    const bool diloco = run.method.name == "diloco";
    fragments_ = diloco ? run.method.fragments : 1;
    for (std::size_t i = 0; i < block.parameters().size(); ++i) {
      const std::string& name = block.parameters()[i].name;
      const std::string layer = name.substr(0, name.find('.'));
      if (std::ranges::find(layers_, layer) == layers_.end()) {
        layers_.push_back(layer);
      }
      place_.push_back({layer, block.offset(i), block.offset(i + 1) - block.offset(i)});
    }
  }
  // fc1 holds most numbers of the network, so each cut leaves it alone.
  std::int64_t fragment_of(const std::string& layer) const {
    const auto i = std::ranges::find(layers_, layer) - layers_.begin();
    if (fragments_ == 1) {
      return 0;
    }
    return std::min<std::int64_t>(i, fragments_ - 1);
  }
  void step(std::int64_t t) {
    const auto& m = run_.method;
    const auto warmup = std::llround(m.warmup_steps.value);
    for (int r = 0; r < n_; ++r) {
      auto& local = locals_[static_cast<std::size_t>(r)];
      local.add_(LocalWorker::noise(t < warmup ? 99 : r, t, 0, local.numel()));
    }
    const std::int64_t done = t + 1;
    if (done == warmup) {
      x_ = locals_[0].clone();
    }
    const auto h = std::llround(m.sync_every.value);
    const std::int64_t delay = m.name == "diloco" ? m.delay : 0;
    const auto begins = [&](std::int64_t f, std::int64_t s) {
      const std::int64_t local = s - warmup - (f + 1) * h / fragments_;
      return s > warmup && s + delay < run_.steps && local >= 0 && local % h == 0;
    };
    for (std::int64_t f = 0; f < fragments_; ++f) {
      if (begins(f, done) && delay == 0) {
        sent_ = mean() - x_;
      }
      if (begins(f, done - delay)) {
        apply(f);
      }
    }
    for (std::int64_t f = 0; f < fragments_; ++f) {
      if (begins(f, done)) {
        sent_ = mean() - x_;
      }
    }
  }
  void apply(std::int64_t f) {
    const auto& m = run_.method;
    const bool diloco = m.name == "diloco";
    const OuterRule rule = m.outer.name.value_or(diloco ? OuterRule::Nesterov : OuterRule::Average);
    const bool steps = rule != OuterRule::Average;
    const double lr = steps ? m.outer.lr : 1;
    const double momentum = steps ? m.outer.momentum : 0;
    const double alpha = diloco ? m.mixing : 1;
    for (const Place& p : place_) {
      if (fragment_of(p.layer) != f) {
        continue;
      }
      const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, p.offset, p.numel); };
      const at::Tensor g = -part(sent_);
      part(v_).copy_(momentum * part(v_) + g);
      part(x_).sub_(lr * (rule == OuterRule::Sgd ? part(v_).clone() : g + momentum * part(v_)));
      for (const at::Tensor& local : locals_) {
        part(local).copy_(alpha * part(x_) + (1 - alpha) * part(local));
      }
    }
  }
  at::Tensor mean() const {
    // Of examples, if the workers have unequal batches.
    at::Tensor sum = at::zeros_like(x_);
    double examples = 0;
    for (std::size_t r = 0; r < locals_.size(); ++r) {
      const double batch = run_.batches.empty() ? 1 : static_cast<double>(run_.batches[r]);
      sum += batch * locals_[r];
      examples += batch;
    }
    return sum / examples;
  }
  const at::Tensor& local(int rank) const {
    return locals_[static_cast<std::size_t>(rank)];
  }

 private:
  struct Place {
    std::string layer;
    std::int64_t offset, numel;
  };
  const LocalRun& run_;
  int n_;
  std::int64_t fragments_ = 1;
  at::Tensor x_, v_, sent_;
  std::vector<at::Tensor> locals_;
  std::vector<std::string> layers_;
  std::vector<Place> place_;
};

LocalRun with_rule(LocalRun run, OuterRule rule) {
  run.method.outer.name = rule;
  return run;
}

class LocalSteps : public ::testing::TestWithParam<LocalCase> {};

TEST_P(LocalSteps, FollowTheRecomputationInFloat64) {
  const LocalCase& c = GetParam();
  const bool whole = c.run.method.fragments == 1 && c.run.method.mixing == 1;
  std::mutex mutex;
  std::vector<at::Tensor> ends(static_cast<std::size_t>(c.workers));
  with_workers(c.workers, c.run, [&](LocalWorker& w, int rank) {
    w.method->start();
    Reference reference(c.run, c.workers, w);
    std::size_t meetings = 0;
    for (std::int64_t t = 0; t < c.run.steps; ++t) {
      w.go(t, t + 1);
      reference.step(t);
      ASSERT_TRUE(at::allclose(
          w.method->block().values().to(at::kDouble), reference.local(rank), 0, c.tolerance))
          << "step " << t + 1;
      // Equal wherever that is claimed: it throws where they are not.
      w.method->check_replicas(t + 1);
      const bool met = w.observer.events.size() > meetings;
      meetings = w.observer.events.size();
      const double warmup = c.run.method.warmup_steps.value;
      EXPECT_EQ(
          w.method->replicas_agree(t + 1), static_cast<double>(t + 1) <= warmup || (met && whole));
    }
    EXPECT_GT(meetings, 0U);
    w.method->finish(c.run.steps);
    EXPECT_TRUE(
        at::allclose(w.method->block().values().to(at::kDouble), reference.mean(), 0, c.tolerance));
    EXPECT_TRUE(w.method->replicas_agree(c.run.steps));
    w.method->check_replicas(c.run.steps);
    const std::lock_guard lock(mutex);
    ends[static_cast<std::size_t>(rank)] = w.method->block().values().clone();
  });
  for (const at::Tensor& end : ends) {
    EXPECT_TRUE(at::equal(end, ends[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalSteps,
    ::testing::Values(
        LocalCase{"local_sgd", 3, local_sgd(0, 5)},
        LocalCase{"local_sgd_after_a_warm_up", 2, local_sgd(7, 4)},
        LocalCase{"local_sgd_each_step", 4, local_sgd(2, 1)},
        LocalCase{"local_sgd_alone", 1, local_sgd(3, 4)},
        LocalCase{"local_sgd_fp16", 4, with_dtype(local_sgd(3, 4), "fp16"), 2e-4},
        LocalCase{"local_sgd_bf16", 2, with_dtype(local_sgd(3, 4), "bf16"), 1e-3},
        LocalCase{"diloco", 4, diloco(0, 6)}, LocalCase{"diloco_after_a_warm_up", 3, diloco(4, 5)},
        LocalCase{"diloco_delayed", 2, diloco(2, 6, 1, 4)},
        LocalCase{"diloco_mixed", 2, diloco(0, 5, 1, 0, 0.25)},
        LocalCase{"diloco_sgd", 2, with_rule(diloco(1, 5), OuterRule::Sgd)},
        LocalCase{"diloco_average", 2, with_rule(diloco(1, 6, 2), OuterRule::Average)},
        LocalCase{"local_sgd_nesterov", 3, with_rule(local_sgd(2, 4), OuterRule::Nesterov)},
        LocalCase{"two_fragments", 2, diloco(1, 7, 2)},
        LocalCase{"unequal_batches", 3, with_batches(local_sgd(2, 4), {40, 30, 2})},
        LocalCase{"unequal_streaming", 2, with_batches(diloco(2, 9, 3, 2, 0.5), {3, 5})},
        LocalCase{"streaming", 3, diloco(2, 9, 3, 2, 0.5)},
        LocalCase{"a_fragment_a_layer", 4, diloco(0, 10, 4, 2)}),
    [](const auto& test) { return test.param.name; });

// Moments travel in fp32 or bf16, statistics in fp32.
TEST(LocalSgd, AveragesMomentsAndStatisticsWhereAsked) {
  for (const bool moments : {false, true}) {
    for (const std::string dtype : {"fp32", "fp16", "bf16"}) {
      LocalRun run = with_dtype(local_sgd(0, 3), dtype);
      run.model = "resnet18";
      run.method.average = moments ? Averaged::ParamsAndMoments : Averaged::Params;
      run.batches = {30, 10};  // so the mean is 3/4 of the first and 1/4 of the second
      with_workers(2, run, [&](LocalWorker& w, int rank) {
        w.method->start();
        w.method->block().moments().fill_(1e-9 * (1 + rank));
        at::Tensor& mean = *w.model->buffers()[0].tensor;
        mean.fill_(rank == 0 ? 1.0 : 3.0);
        w.method->after_step(3);
        const double wanted = moments ? 1.25e-9 : 1e-9 * (1 + rank);
        const at::Tensor seen = w.method->block().moments().to(at::kDouble);
        EXPECT_LT(
            (seen - wanted).abs().max().item<double>(),
            (dtype == "bf16" && moments ? 1e-2 : 1e-6) * wanted)
            << dtype;
        EXPECT_EQ(mean[0].item<float>(), 1.5F);
        EXPECT_EQ(
            w.observer.events.back(),
            (std::pair<std::int64_t, std::string>{3, moments ? "params+moments" : "params"}));
      });
    }
  }
}

// With fragments the statistics go with the last one of a round.
TEST(Diloco, AveragesStatisticsOnceARound) {
  LocalRun run = diloco(0, 4, 2);
  run.model = "resnet18";
  with_workers(2, run, [&](LocalWorker& w, int rank) {
    w.method->start();
    at::Tensor& mean = *w.model->buffers()[0].tensor;
    mean.fill_(rank);
    w.method->after_step(2);
    EXPECT_EQ(mean[0].item<float>(), static_cast<float>(rank));
    w.method->after_step(4);
    EXPECT_EQ(mean[0].item<float>(), 0.5F);
    EXPECT_EQ(w.observer.events[0].second, "outer, fragment 0");
    EXPECT_EQ(w.observer.events[1].second, "outer, fragment 1");
  });
}

// An evaluation gives what an end would give now, and changes nothing.
TEST(LocalTraining, MergedIsWhatTheEndGives) {
  for (const LocalRun& run : {local_sgd(2, 5), diloco(2, 8, 2, 3, 0.5)}) {
    with_workers(3, run, [&](LocalWorker& w, int) {
      auto& world = *w.method->now().replicas;
      w.method->start();
      for (std::int64_t t = 0; t < run.steps; ++t) {
        w.go(t, t + 1);
        const auto before = w.all();
        const auto sent = w.meter.training_bytes();
        const auto merged = nn::make_model(w.model_options(), LocalWorker::shape());
        w.method->merge_into(*merged);
        EXPECT_EQ(w.meter.training_bytes(), sent);
        const auto after = w.all();
        for (std::size_t i = 0; i < before.size(); ++i) {
          EXPECT_TRUE(at::equal(before[i], after[i]));
        }
        at::Tensor mean = w.method->block().values().clone();
        world.all_reduce(mean, comm::ReduceOp::Mean, comm::Purpose::Metrics).wait();
        for (const nn::NamedWeight& weight : merged->weights()) {
          const auto i = static_cast<std::size_t>(weight.position);
          ASSERT_TRUE(at::allclose(
              weight.weight->dense.reshape({-1}),
              mean.narrow(0, w.method->block().offset(i), weight.weight->dense.numel()), 0, 1e-6));
        }
      }
    });
  }
}

// A meeting after t steps is the reducer's step t; what is due is done by the
// next one.
TEST(LocalTraining, MeetingsAreEvaluatedByTheirStep) {
  LocalRun run = local_sgd(4, 3);
  run.reducer.evaluate_every = 5;
  with_workers(2, run, [](LocalWorker& w, int) {
    w.method->start();
    w.go(0, 30);
    // Step 0 of the warm-up; then of 7, 10, ... the first one from 5, 10, ...
    // on.
    EXPECT_EQ(w.observer.evaluated, (std::vector<std::int64_t>{1, 7, 10, 16, 22, 25}));
  });
}

}  // namespace
}  // namespace abtrain::methods
