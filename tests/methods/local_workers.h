// Workers of a method, without data: a step adds small random numbers to what a
// worker trains, its own in each step, or those of the workers with which it
// averages gradients.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "comm/meter.h"
#include "comm/run_workers.h"
#include "methods/method_kind.h"
#include "reducer_words.h"

namespace abtrain::testing {

class QuietObserver : public methods::Observer {
 public:
  void decomposed(
      std::int64_t step, const std::vector<methods::LayerRank>& ranks, double) override {
    events.emplace_back(step, "decomposed");
    layers = ranks;
  }
  void synchronized(std::int64_t step, const std::string& mode, double) override {
    events.emplace_back(step, mode);
  }
  void compressed(std::int64_t step, const compress::Evaluation&) override {
    evaluated.push_back(step);
  }
  void add_svd_seconds(double) override {}

  std::vector<std::pair<std::int64_t, std::string>> events;
  std::vector<std::int64_t> evaluated;
  std::vector<methods::LayerRank> layers;  // of the last decomposition
};

struct LocalRun {
  methods::MethodOptions method;
  compress::ReducerOptions reducer;
  optim::OptimizerOptions optimizer;
  std::int64_t steps = 30;
  std::string model = "mlp";
  std::vector<std::int64_t> batches = {};  // of the workers; empty: all alike
  double width = 0.1;
};

inline LocalRun local_sgd(std::int64_t warmup, double interval) {
  LocalRun run;
  run.method.name = "local-sgd";
  run.method.warmup_steps = Duration::steps(static_cast<double>(warmup));
  run.method.sync_every = Duration::steps(interval);
  return run;
}

inline LocalRun diloco(
    std::int64_t warmup, double interval, std::int64_t fragments = 1, std::int64_t delay = 0,
    double mixing = 1) {
  LocalRun run = local_sgd(warmup, interval);
  run.method.name = "diloco";
  run.method.fragments = fragments;
  run.method.delay = delay;
  run.method.mixing = mixing;
  return run;
}

// AB-training in groups of one, with one role or both.
inline LocalRun ab_run(std::int64_t warmup, double interval, double full_rank) {
  LocalRun run;
  run.method.group_size = 1;
  run.method.warmup_steps = Duration::steps(static_cast<double>(warmup));
  run.method.sync_every = Duration::steps(interval);
  run.method.full_rank_steps = Duration::steps(full_rank);
  run.method.rank.rule = linalg::RankRuleName::Fixed;
  run.method.rank.rank = 5;
  run.width = 1;
  return run;
}

inline LocalRun both_run(double interval) {
  LocalRun run = ab_run(0, interval, 0);
  run.method.trains = methods::Trains::Both;
  return run;
}

inline LocalRun with_batches(LocalRun run, const std::vector<std::int64_t>& batches) {
  run.batches = batches;
  return run;
}

inline LocalRun with_dtype(LocalRun run, const std::string& dtype) {
  set_option(run.reducer, "dtype", dtype);
  return run;
}

// A parameter of a test.
struct LocalCase {
  std::string name;
  int workers;
  LocalRun run;
  double tolerance = 2e-6;
};

// A saved state with tensors of its own.
inline state::State copy_of(const state::State& state) {
  state::State copy;
  copy.own = state.own;
  copy.replicas = state.replicas;
  *copy.values = *state.values;
  for (auto* tensors : {&copy.own, &copy.replicas}) {
    for (auto& [name, tensor] : *tensors) {
      tensor = tensor.clone();
    }
  }
  return copy;
}

class LocalWorker {
 public:
  LocalWorker(const LocalRun& run, comm::Communicator& world)
      : run_(run),
        world_(comm::metered(world, "world", meter)),
        model(nn::make_model(model_options(), shape())),
        optimizer_(optim::make_optimizer(run.optimizer)),
        length_{run.steps, run.steps},
        schedule_(optim::ScheduleOptions{}, 0.1, length_) {
    model->initialize(nn::InitName::Kaiming, 5);
    method = methods::kind_of(run_.method)
                 .make(
                     {*model, *world_, *optimizer_, schedule_, run_.method, run_.reducer, length_,
                      11, observer, run_.batches});
  }

  // Steps [from, to): each changes values, moments and running statistics.
  void go(std::int64_t from, std::int64_t to) {
    for (std::int64_t t = from; t < to; ++t) {
      train(t);
      const at::NoGradGuard no_grad;
      method->after_step(t + 1);
    }
  }
  // Step t up to after_step().
  void train(std::int64_t t) {
    const at::NoGradGuard no_grad;
    method->block().zero_gradients();
    method->reduce_gradients(t);
    auto& block = method->block();
    const comm::Communicator* group = method->now().gradient_group;
    const int rank = world_->rank() + (group ? 99 - group->rank() : 0);
    block.values().add_(noise(rank, t, 0, block.numel()));
    block.moments().add_(noise(rank, t, 1, block.moments().numel()));
    for (const nn::NamedBuffer& b : model->buffers()) {
      b.tensor->add_(noise(world_->rank(), t, 2, b.tensor->numel()).view(b.tensor->sizes()));
    }
  }

  static at::Tensor noise(int rank, std::int64_t t, int what, std::int64_t numel) {
    return at::randn(
               {numel},
               at::detail::createCPUGenerator(
                   static_cast<std::uint64_t>((rank * 1000 + t) * 3 + what)),
               at::kFloat)
        .mul_(0.01);
  }

  // Everything that training goes on from.
  std::vector<at::Tensor> all() {
    std::vector<at::Tensor> tensors = {
        method->block().values().clone(), method->block().moments().clone()};
    for (const nn::NamedBuffer& b : model->buffers()) {
      tensors.push_back(b.tensor->clone());
    }
    return tensors;
  }

  // A copy: the state's tensors are those of the method.
  state::State save() {
    method->settle();
    return saved();
  }
  // Of a worker that has lost another one.
  state::State survive() {
    method->abandon();
    return saved();
  }
  state::State saved() {
    state::State state;
    pass_through(state::Archive::saving(state));
    return copy_of(state);
  }
  void load(state::State& state) {
    pass_through(state::Archive::loading(state));
  }
  void pass_through(state::Archive archive) {
    for (const nn::NamedBuffer& b : model->buffers()) {
      archive.tensor("buffer." + b.name, *b.tensor, state::Owner::Worker);
    }
    method->archive(archive);
  }
  // Goes on from copies of the states of all workers, of which some are gone.
  void regroup(const std::vector<state::State>& states, std::int64_t step) {
    std::vector<state::State> own;
    for (const state::State& state : states) {
      own.push_back(copy_of(state));
    }
    method->regroup(own, step);
  }

  comm::Communicator& world() {
    return *world_;
  }
  static data::ExampleShape shape() {
    return {1, 8, 8, 4};
  }
  nn::ModelOptions model_options() const {
    nn::ModelOptions options;
    options.name = run_.model;
    options.hidden = {24, 20, 10};
    options.width = run_.width;
    return options;
  }

 private:
  const LocalRun run_;

 public:
  comm::TrafficMeter meter;

 private:
  std::unique_ptr<comm::Communicator> world_;

 public:
  std::unique_ptr<nn::Model> model;
  QuietObserver observer;

 private:
  std::unique_ptr<optim::Optimizer> optimizer_;
  RunLength length_;
  optim::Schedule schedule_;

 public:
  std::unique_ptr<methods::Method> method;
};

inline void with_workers(
    int n, const LocalRun& run, const std::function<void(LocalWorker&, int)>& body) {
  comm::run_workers(n, 30, [&](comm::Communicator& world) {
    LocalWorker worker(run, world);
    body(worker, world.rank());
  });
}

}  // namespace abtrain::testing
