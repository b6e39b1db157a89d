// The device work of a worker's steps: forward and backward passes of the
// micro-batches, then the pass of the optimizer. The gradients travel between
// the two, outside.
//
// On a GPU both are captured (device/graph.h), apart: after each change of the
// method's layout the first kEagerSteps run operator by operator, then the
// passes are captured and replayed until the tensors move again. A phase that
// is over within kWorthSteps of that is not captured, nor are passes whose
// examples are looked at one by one. Nor, with `auto`, are
// passes that send gradients on their way from a GPU of one worker alone: there
// the network is what a step waits for. Where a capture fails,
// the worker goes on operator by operator (`train.cuda_graphs: on`:
// Error(Config)).
//
// Workers capture in the same step, by the same rule. Those that share a GPU
// wait for each other before and after: meanwhile nobody's other work runs, and
// no worker waits for another one within.
#pragma once

#include <cstdint>
#include <functional>

#include "data/batch_source.h"
#include "device/graph.h"
#include "methods/method.h"
#include "nn/tape.h"
#include "orders/balancer.h"
#include "train/trainer.h"

namespace abtrain::train {

class TrainingStep {
 public:
  // cuDNN picks its algorithms in the first, and a third finds every workspace
  // and library handle in use; PyTorch's own captures take as many.
  static constexpr std::int64_t kEagerSteps = 3;
  // A capture costs a few steps' worth of launches; the dense steps between two
  // AB phases (method.full_rank_steps: 10) are not worth one.
  static constexpr std::int64_t kWorthSteps = 20;

  struct Parts {
    const TrainInputs& inputs;
    std::int64_t steps;  // of the run
    comm::Communicator& world;
    nn::Model& model;
    methods::Method& method;
    optim::Optimizer& optimizer;
    data::BatchSource& batches;
    // Gets the gradients of single examples; null: nobody does.
    orders::Balancer* examples = nullptr;
  };
  // All references outlive it.
  explicit TrainingStep(const Parts& parts);

  // Leaves the mean gradients of step t in the method's block. Returns the mean
  // loss, a scalar on the device that the next step overwrites.
  at::Tensor forward_backward(std::int64_t t);
  // Clips, then updates the parameters. `see_norm` (where there is a limit)
  // gets the norm of all gradients: before the update, if it is not captured.
  void optimize(
      double rate,
      const std::function<void(const at::Tensor& norm)>& see_norm);
  // Before tensors of the model move: gives up what was captured of them.
  void release();

 private:
  void prepare(std::int64_t t);
  bool may_overlap() const;
  bool lasts(std::int64_t t) const;
  bool is_worth_capturing(std::int64_t t) const;
  void capture(std::int64_t t);
  void meet();
  std::uint64_t addresses() const;
  void take_batch();
  // `sends`: the step whose gradients may be sent on the way, or -1.
  void pass(std::int64_t sends);
  // The mean of these images' losses.
  at::Tensor
  loss_of(const at::Tensor& images, const at::Tensor& labels, nn::Tape* tape);
  void record_examples(const nn::Tape& tape);
  void pass_one_by_one();
  at::Tensor clip(bool fixed);
  void update(const at::Tensor& divisor);

  Parts in_;
  const config::TrainOptions& options_;
  bool captures_;        // this run, as all workers know
  bool failed_ = false;  // here
  bool one_by_one_;      // an example's gradient takes a pass of its own
  std::int64_t layout_ = -1;
  std::int64_t steps_ = 0;        // with this layout
  device::CaptureTurn own_turn_;  // where none is handed in
  device::CaptureTurn& turn_;
  // What captured work reads and writes.
  data::Batch batch_;
  at::Tensor loss_;  // sum of the micro-batches
  at::Tensor norm_;
  optim::Rates rates_;
  std::uint64_t captured_at_ = 0;  // addresses() then
  device::Graph pass_graph_;
  device::Graph update_graph_;
};

}  // namespace abtrain::train
