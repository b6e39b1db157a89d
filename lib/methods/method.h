// What a training method is: hooks at fixed moments of the one training loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compress/gradient_exchange.h"
#include "compress/reducer_options.h"
#include "linalg/value_sample.h"
#include "methods/method_options.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "optim/parameter_block.h"
#include "optim/schedule.h"
#include "state/archive.h"

namespace abtrain::methods {

// A factored layer at one moment.
struct LayerRank {
  std::string name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t rank = 0;    // 0: dense
  double energy = 1;        // share of sum s^2 kept by the last cut
  double first_energy = 1;  // and by the first
  // What the last cut was chosen from; none in a run that has just gone on.
  linalg::ValueSample values = {};
};

// Hears of what a method does; called on every worker.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void decomposed(
      std::int64_t step,
      const std::vector<LayerRank>& layers,
      double seconds) = 0;
  virtual void synchronised(
      std::int64_t step, const std::string& mode, double seconds) = 0;
  // A step whose averaged gradients were compared with their true mean.
  virtual void compressed(
      std::int64_t step, const compress::Evaluation& evaluation) = 0;
  // Seconds spent in decompositions, communication not counted.
  virtual void add_svd_seconds(double seconds) = 0;
};

// What every method works with; all references outlive the method.
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
};

class Method {
 public:
  virtual ~Method() = default;
  // Before the first step: takes the model's parameters over.
  virtual void start() = 0;
  // What the optimizer trains now.
  virtual optim::ParameterBlock& block() = 0;
  // Rate of step t = 0, 1, ...
  virtual double learning_rate(std::int64_t t) = 0;
  // The rate of factors is this much larger.
  virtual double factor_lr_scale() const {
    return 1;
  }
  // Before the last backward pass of step t, where it may send gradients as they
  // come: not of one that is captured or replayed.
  virtual void before_backward(std::int64_t /*t*/) {}
  // Whether before_backward() would now send some.
  virtual bool sends_early() const {
    return false;
  }
  // After it: averages block().gradients().
  virtual void reduce_gradients(std::int64_t t) = 0;
  // The workers whose gradients the next step averages; null: none, each goes on
  // alone.
  virtual comm::Communicator* gradient_group() {
    return nullptr;
  }
  // From now on `watch` sees the gradients that are averaged, before they are.
  virtual void watch_gradients(compress::GradientWatch watch) = 0;
  // After t steps are done.
  virtual void after_step(std::int64_t t) = 0;
  // After the last step: leaves one model, the same on every worker.
  virtual void finish(std::int64_t t) = 0;
  // Gives `target` (a model of the same kind) the weights that a final
  // synchronisation now would give; changes no state. Traffic: metrics.
  virtual void merge_into(nn::Model& target) = 0;
  // The workers that hold the same parameters now (where replicas_agree()).
  virtual comm::Communicator& replicas() = 0;
  // "A", "B", or "" where all train the same.
  virtual std::string role() const {
    return "";
  }
  // "full", "ab" or "local": how a step trains now.
  virtual std::string phase_name() const {
    return "full";
  }
  // Ranks of the factored layers, empty where nothing is factored.
  virtual std::vector<LayerRank> layers() const {
    return {};
  }
  // Seconds that compressing gradients has taken so far.
  virtual compress::Costs costs() {
    return {};
  }
  // Ends what is under way between workers, so that archive() can save; the run
  // goes on to the same bits. Collective.
  virtual void settle() {}
  // Everything that a bit-exact resume needs. Loading: instead of start(), into
  // a fresh method of the same worker.
  virtual void archive(state::Archive& archive) = 0;
  // Instead of start(), after t steps: one model and its moments out of what the
  // workers of a run with another number of them held; one state a replica group.
  // Collective.
  virtual void regroup(std::vector<state::State>& old, std::int64_t t) = 0;
  // How often the tensors of block() and of the model have been replaced: what
  // was captured of a step holds as long as this number stays.
  std::int64_t layout() const {
    return layout_;
  }
  // Whether after_step(t) will replace them, by the phase that it is now.
  virtual bool moves_after(std::int64_t /*t*/) const {
    return false;
  }
  // False after a step that each replica took on its own.
  virtual bool replicas_agree(std::int64_t /*t*/) const {
    return true;
  }
  // Whether one of replicas() can save for all of them after t steps: no part of
  // their states is their own.
  virtual bool one_state(std::int64_t t) const {
    return replicas_agree(t);
  }
  // Throws where replicas that should agree after t steps differ in a bit of
  // parameters or moments.
  void check_replicas(std::int64_t t);

 protected:
  // More that must be equal on replicas().
  virtual std::vector<at::Tensor> replicated_state() = 0;
  // To be called wherever a block is built or loaded.
  void moved() {
    ++layout_;
  }

 private:
  std::int64_t layout_ = 0;
};

std::unique_ptr<Method> make_method(const MethodContext& context);

}  // namespace abtrain::methods
