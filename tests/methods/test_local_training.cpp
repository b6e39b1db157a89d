// Training with local steps against a re-computation in float64.
#include "methods/local/training.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <array>
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
using testing::with_dtype;
using testing::with_workers;

// torch.optim.SGD(nesterov=True), from PyTorch's Python.
TEST(OuterStep, HasPyTorchsValues) {
  const std::array<std::array<float, 4>, 3> gradients = {
      {{0.1F, -0.2F, 0.3F, 0},
       {0.05F, 0.4F, -0.3F, 0},
       {-0.6F, 0.1F, 0.2F, 1}}};
  struct Case {
    OuterSgd sgd;
    std::array<std::array<float, 4>, 3> wanted;
  };
  const std::vector<Case> cases = {
      {{0.7, 0.9},
       {{{0.866999984F, -1.733999968F, 0.101000011F, 0},
         {0.743799984F, -2.152600050F, 0.329900026F, 0},
         {1.462419987F, -2.410340071F, 0.080910020F, -1.329999924F}}}},
      {{0.5, 0.25},
       {{{0.9375F, -1.875F, 0.3125F, 0},
         {0.903124988F, -2.118750095F, 0.490625024F, 0},
         {1.275781274F, -2.192187548F, 0.372656286F, -0.625F}}}}};
  for (const Case& c : cases) {
    at::Tensor x = at::tensor({1.0F, -2.0F, 0.5F, 0.0F});
    at::Tensor velocity = at::zeros({4});
    for (std::size_t k = 0; k < 3; ++k) {
      const at::Tensor change =
          at::tensor(at::ArrayRef<float>(gradients[k].data(), 4)).neg();
      outer_step(c.sgd, x, change, velocity);
      const at::Tensor wanted =
          at::tensor(at::ArrayRef<float>(c.wanted[k].data(), 4));
      EXPECT_TRUE(at::allclose(x, wanted, 0, 3e-7)) << x << wanted;
    }
  }
}

TEST(OuterStep, WithoutMomentumAndRateOneIsTheMean) {
  at::Tensor x = at::tensor({1.0F, -2.0F, 0.5F});
  outer_step({1, 0}, x, at::tensor({0.25F, 1.0F, -4.0F}), at::Tensor());
  EXPECT_TRUE(at::equal(x, at::tensor({1.25F, -1.0F, -3.5F})));
}

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
      place_.push_back(
          {layer, block.offset(i), block.offset(i + 1) - block.offset(i)});
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
      return s > warmup && s + delay < run_.steps && local >= 0 &&
             local % h == 0;
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
    const double lr = diloco ? m.outer_lr : 1;
    const double momentum = diloco ? m.outer_momentum : 0;
    const double alpha = diloco ? m.mixing : 1;
    for (const Place& p : place_) {
      if (fragment_of(p.layer) != f) {
        continue;
      }
      const auto part = [&](const at::Tensor& flat) {
        return flat.narrow(0, p.offset, p.numel);
      };
      const at::Tensor g = -part(sent_);
      part(v_).copy_(momentum * part(v_) + g);
      part(x_).sub_(lr * (g + momentum * part(v_)));
      for (const at::Tensor& local : locals_) {
        part(local).copy_(alpha * part(x_) + (1 - alpha) * part(local));
      }
    }
  }
  at::Tensor mean() const {
    at::Tensor sum = at::zeros_like(x_);
    for (const at::Tensor& local : locals_) {
      sum += local;
    }
    return sum / n_;
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
          w.method->block().values().to(at::kDouble),
          reference.local(rank),
          0,
          c.tolerance))
          << "step " << t + 1;
      // Equal wherever that is claimed: it throws where they are not.
      w.method->check_replicas(t + 1);
      const bool met = w.observer.events.size() > meetings;
      meetings = w.observer.events.size();
      const double warmup = c.run.method.warmup_steps.value;
      EXPECT_EQ(
          w.method->replicas_agree(t + 1),
          static_cast<double>(t + 1) <= warmup || (met && whole));
    }
    EXPECT_GT(meetings, 0U);
    w.method->finish(c.run.steps);
    EXPECT_TRUE(at::allclose(
        w.method->block().values().to(at::kDouble),
        reference.mean(),
        0,
        c.tolerance));
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
    All,
    LocalSteps,
    ::testing::Values(
        LocalCase{"local_sgd", 3, local_sgd(0, 5)},
        LocalCase{"local_sgd_after_a_warm_up", 2, local_sgd(7, 4)},
        LocalCase{"local_sgd_each_step", 4, local_sgd(2, 1)},
        LocalCase{"local_sgd_alone", 1, local_sgd(3, 4)},
        LocalCase{
            "local_sgd_fp16",
            4,
            with_dtype(local_sgd(3, 4), "fp16"),
            2e-4},
        LocalCase{
            "local_sgd_bf16",
            2,
            with_dtype(local_sgd(3, 4), "bf16"),
            1e-3},
        LocalCase{"diloco", 4, diloco(0, 6)},
        LocalCase{"diloco_after_a_warm_up", 3, diloco(4, 5)},
        LocalCase{"diloco_delayed", 2, diloco(2, 6, 1, 4)},
        LocalCase{"diloco_mixed", 2, diloco(0, 5, 1, 0, 0.25)},
        LocalCase{"two_fragments", 2, diloco(1, 7, 2)},
        LocalCase{"streaming", 3, diloco(2, 9, 3, 2, 0.5)},
        LocalCase{"a_fragment_a_layer", 4, diloco(0, 10, 4, 2)}),
    [](const auto& test) { return test.param.name; });

// Moments travel in fp32 or bf16, statistics in fp32.
TEST(LocalSgd, AveragesMomentsAndStatisticsWhereAsked) {
  for (const bool moments : {false, true}) {
    for (const std::string dtype : {"fp32", "fp16", "bf16"}) {
      LocalRun run = with_dtype(local_sgd(0, 3), dtype);
      run.model = "resnet18";
      run.method.average =
          moments ? Averaged::ParamsAndMoments : Averaged::Params;
      with_workers(2, run, [&](LocalWorker& w, int rank) {
        w.method->start();
        w.method->block().moments().fill_(1e-9 * (1 + rank));
        at::Tensor& mean = *w.model->buffers()[0].tensor;
        mean.fill_(rank == 0 ? 1.0 : 2.0);
        w.method->after_step(3);
        const double wanted = moments ? 1.5e-9 : 1e-9 * (1 + rank);
        const at::Tensor seen = w.method->block().moments().to(at::kDouble);
        EXPECT_LT(
            (seen - wanted).abs().max().item<double>(),
            (dtype == "bf16" && moments ? 1e-2 : 1e-6) * wanted)
            << dtype;
        EXPECT_EQ(mean[0].item<float>(), 1.5F);
        EXPECT_EQ(
            w.observer.events.back(),
            (std::pair<std::int64_t, std::string>{
                3, moments ? "params+moments" : "params"}));
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
        const auto merged =
            nn::make_model(w.model_options(), LocalWorker::shape());
        w.method->merge_into(*merged);
        EXPECT_EQ(w.meter.training_bytes(), sent);
        const auto after = w.all();
        for (std::size_t i = 0; i < before.size(); ++i) {
          EXPECT_TRUE(at::equal(before[i], after[i]));
        }
        at::Tensor mean = w.method->block().values().clone();
        world.all_reduce(mean, comm::ReduceOp::Mean, comm::Purpose::Metrics)
            .wait();
        for (const nn::NamedWeight& weight : merged->weights()) {
          const auto i = static_cast<std::size_t>(weight.position);
          ASSERT_TRUE(at::allclose(
              weight.weight->dense.reshape({-1}),
              mean.narrow(
                  0, w.method->block().offset(i), weight.weight->dense.numel()),
              0,
              1e-6));
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
    EXPECT_EQ(
        w.observer.evaluated,
        (std::vector<std::int64_t>{1, 7, 10, 16, 22, 25}));
  });
}

}  // namespace
}  // namespace abtrain::methods
