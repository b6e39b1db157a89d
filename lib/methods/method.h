// The interface of a training method: hooks that the training loop calls at fixed points, and a
// description of the current phase.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compress/reducer_options.h"
#include "linalg/value_sample.h"
#include "methods/average.h"
#include "methods/gradient_reduction.h"
#include "methods/method_options.h"
#include "methods/timeline.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "optim/parameter_block.h"
#include "optim/schedule.h"
#include "state/archive.h"

namespace abtrain::methods {

// A layer that may be factored, at one point of the run. A decomposition cuts it: it drops small
// singular values s.
struct LayerRank {
  std::string name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t rank = 0;    // 0: dense
  double energy = 1;        // share of the sum of s^2 that the last cut kept
  double first_energy = 1;  // the share that the first cut kept
  // A sample of the singular values at the last cut; empty in a run that was just resumed.
  linalg::ValueSample values = {};
  std::int64_t first_rank = 0;  // rank after the first cut; 0: not cut so far
  std::int64_t grid = 1;        // blocks per side, each of rank `rank` / grid
};

// Is told of a method's events. Every worker has an observer.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void decomposed(
      std::int64_t step, const std::vector<LayerRank>& layers, double seconds) = 0;
  virtual void synchronized(std::int64_t step, const std::string& mode, double seconds) = 0;
  // Called after a step whose averaged gradients were compared with their true mean.
  virtual void compressed(std::int64_t step, const compress::Evaluation& evaluation) = 0;
  // Seconds spent in decompositions, without communication.
  virtual void add_svd_seconds(double seconds) = 0;
};

// The inputs of every method; all references must outlive the method.
struct MethodContext {
  nn::Model& model;
  comm::Communicator& world;
  const optim::Optimizer& optimizer;
  const optim::Schedule& schedule;
  const MethodOptions& options;
  const compress::ReducerOptions& reducer;
  const RunLength& length;
  std::uint64_t seed;
  Observer& observer;
  // Each worker's batch size, which is its weight in averages; empty: all are equal.
  std::vector<std::int64_t> batches = {};
};

// How a worker trains at present.
struct Stage {
  Phase phase = Phase::Full;
  // The workers that hold the same parameters whenever replicas_agree().
  comm::Communicator* replicas = nullptr;
  // The workers over which the next step averages gradients; null: each worker trains alone.
  comm::Communicator* gradient_group = nullptr;
  // Gradients are sent while the backward pass runs.
  bool sends_early = false;
  // One replica can save the state of all, because no part of it is private to a replica.
  bool one_state = true;
  // The learning rate of factors, as a multiple of the rate of all other parameters.
  double factor_lr_scale = 1;
};

class Method {
 public:
  // `dense`: the reducer for steps that average gradients over all workers (the world).
  Method(const MethodContext& context, const compress::ReducerOptions& dense);
  virtual ~Method() = default;

  // Called before the first step: takes over the model's parameters.
  virtual void start() = 0;
  // Called before the last backward pass of step t if that pass may send gradients as soon as they
  // are ready. Not called if the pass is captured or replayed as a CUDA graph.
  void before_backward(std::int64_t t);
  // Called after that pass: averages block().gradients().
  void reduce_gradients(std::int64_t t);
  // Called after t steps are done.
  virtual void after_step(std::int64_t /*t*/) {}
  // Called after the last step: leaves one model, the same on every worker. The default averages
  // the running statistics.
  virtual void finish(std::int64_t t);
  // Gives `target` (a model of the same kind) the weights that a final synchronization would give
  // now; changes no state. Its traffic counts as metrics. The default makes `target` share the
  // dense weights and parameters, without gradients, and averages the running statistics.
  virtual void merge_into(nn::Model& target);
  // Completes transfers in flight between workers, so that archive() can save the state. The run's
  // results stay bit-identical. Collective.
  virtual void settle() {}
  // Saves or loads everything that a bit-exact resume needs. For loading, call it instead of
  // start(), on a fresh method of the same worker.
  virtual void archive(state::Archive& archive) = 0;
  // Drops transfers in flight after a worker was lost. Whichever collective failed, archive() can
  // then save this worker's state for regroup(), because a method changes its state only once it
  // has received everything that the change needs.
  virtual void abandon() {}
  // The last step count, up to t, at which this worker was synchronized with others; -1: none. Of
  // two workers that have done at least t steps, the one with the smaller value lacks a
  // synchronization.
  std::int64_t agreed_after(std::int64_t t);
  // Called instead of start(), after t steps: builds one model and its moments from the workers'
  // states of a run with a different number of workers. `old` holds one state per replica group.
  // Collective.
  virtual void regroup(std::vector<state::State>& old, std::int64_t t) = 0;

  // From now on passes gradients to `watch` before they are averaged.
  virtual void watch_gradients(compress::GradientWatch watch) {
    reduction_.watch(std::move(watch));
  }

  virtual Stage now() = 0;
  // The parameters that the optimizer trains now.
  optim::ParameterBlock& block() {
    return trained_;
  }
  // Learning rate of step t = 0, 1, ...
  virtual double learning_rate(std::int64_t t) {
    return context_.schedule.at(t);
  }
  // Ranks of the layers that may be factored; empty if nothing is factored.
  virtual std::vector<LayerRank> layers() const {
    return {};
  }
  // Seconds spent so far on encoding, sending and decoding gradients or changes.
  virtual compress::Costs costs() {
    return reduction_.costs();
  }
  // The number of times that the tensors of block() and of the model have been replaced. A CUDA
  // graph of a step stays valid as long as this number does not change.
  std::int64_t layout() const {
    return layout_;
  }
  // Whether after_step(t) will replace tensors and so change layout(), given the current phase.
  bool moves_after(std::int64_t t);
  // Whether after_step(t) will act on an event, given the current phase.
  bool acts_after(std::int64_t t) {
    return ending_after(t).after != Event::None;
  }
  // Plans the events after step t anew. Call it on all workers when MethodContext::length has been
  // estimated anew. Durations that have begun keep their number of steps.
  void replan(std::int64_t t);
  // The smallest length of the run, in steps, that is still possible after t steps.
  virtual std::int64_t fewest_steps(std::int64_t t) const {
    return t;
  }
  // In a run by the clock (train.seconds), archives the planned durations in steps. For loading,
  // call it before archive() or regroup().
  void archive_plan(state::Archive& archive);
  // False if replicas may differ after t steps, because each one trained on its own.
  virtual bool replicas_agree(std::int64_t /*t*/) const {
    return true;
  }
  // Throws Error(Diverged) if replicas that should agree after t steps differ
  // in a bit of their parameters or moments.
  void check_replicas(std::int64_t t);

 protected:
  // The object that averages the next step's gradients; null if they are not averaged.
  virtual GradientReduction* reduction() {
    return &reduction_;
  }
  // All tensors that must be equal on replicas now.
  virtual std::vector<at::Tensor> replicated_state() = 0;
  // Called when the timeline has been rebuilt, for a run of this length.
  virtual void replanned(const RunLength& /*length*/) {}
  // This worker's weight in an average over the world (methods/average.h).
  double world_weight() const {
    return weight_of(context_.batches, static_cast<std::size_t>(context_.world.rank()));
  }
  // The stretch of the current phase that ends after t steps; if none ends, a stretch without an
  // event.
  Stretch ending_after(std::int64_t t);
  // Makes a block of the whole dense model.
  void make_dense_block();
  // Loads each of these states, then sets the block to the mean of their blocks. `loaded` is called
  // after each load and may change the block's values.
  void load_mean(std::span<state::State> old, const std::function<void()>& loaded = {});
  // Counts a rebuilt block for layout(). Call it after each build, before values are loaded.
  void moved() {
    ++layout_;
  }

  const MethodContext context_;
  // The context's options; in a run by the clock, with durations converted to steps.
  MethodOptions planned_;
  Timeline timeline_;
  optim::ParameterBlock trained_;
  GradientReduction reduction_;  // for dense steps, over the world

 private:
  std::vector<Duration*> planned_durations();
  void make_plan();

  std::int64_t layout_ = 0;
};

}  // namespace abtrain::methods
