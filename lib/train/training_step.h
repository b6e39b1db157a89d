// The device work of a worker's steps: forward and backward passes of the micro-batches, then the
// optimizer pass. The gradients are exchanged between these passes, outside this class.
//
// On a GPU both passes are captured as separate graphs (device/graph.h). After each change of
// Method::layout() (the trained tensors) the first kEagerSteps run operator by operator; then the
// passes are captured, and replayed until the tensors move again. Passes are not captured if the
// phase ends within kWorthSteps or if the order takes the gradients of single examples. Gradients
// of a captured pass are sent after it, not during it; if a worker has a GPU of its own and could
// send early, `auto` times kTrialSteps captured and as many uncaptured steps and keeps the faster
// form. If a capture fails, the worker goes on operator by operator (`train.cuda_graphs: on`:
// Error(Config)).
//
// Workers capture in the same step, by the same rule. Workers that share a GPU wait for each other
// before and after a capture. Meanwhile no other work runs, and no worker waits for another one
// within the capture.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "data/batch_source.h"
#include "device/graph.h"
#include "device/span.h"
#include "methods/method.h"
#include "nn/tape.h"
#include "orders/balancer.h"
#include "train/batch_weights.h"
#include "train/core_use.h"
#include "train/train_inputs.h"

namespace abtrain::train {

class TrainingStep {
 public:
  // cuDNN picks its algorithms in the first step, and by the third every workspace and library
  // handle is in use. PyTorch's make_graphed_callables() also warms up with three.
  static constexpr std::int64_t kEagerSteps = 3;
  // A capture costs as much as the launches of a few steps; the dense steps
  // between two AB phases (method.full_rank_steps: 10) are not worth one.
  static constexpr std::int64_t kWorthSteps = 20;
  static constexpr std::int64_t kTrialSteps = 10;

  struct Parts {
    const TrainInputs& inputs;
    const std::int64_t& steps;  // length of the run, which may change
    comm::Communicator& world;
    nn::Model& model;
    methods::Method& method;
    optim::Optimizer& optimizer;
    data::BatchSource& batches;
    // Null: all micro-batches of all workers count alike.
    BatchWeights* weights = nullptr;
    // Receives the gradients of single examples; null: they are not needed.
    orders::Balancer* examples = nullptr;
  };
  // All references must outlive this object.
  explicit TrainingStep(const Parts& parts);

  // Leaves the gradients of step t in the method's block. Averaged over the workers that exchange
  // them, they are the gradient of the mean loss over all labels of these workers. Returns the mean
  // loss over this worker's labels, a scalar on the device that the next step overwrites; undefined
  // if none of them counts.
  at::Tensor forward_backward(std::int64_t t);
  // Clips the gradients, then updates the parameters. With train.clip_norm, `see_norm` gets the
  // norm of all gradients, before the update unless the update is captured.
  void optimize(double rate, const std::function<void(const at::Tensor& norm)>& see_norm);
  // Times of the forward passes, backward passes that send nothing, and optimizer passes.
  const CoreTime& core_time() const {
    return cores_.time();
  }
  // Call before tensors of the model move: drops the captured graphs that use them.
  void release();

 private:
  void prepare(std::int64_t t);
  bool may_overlap() const;
  bool compares_forms() const;
  double take_trial();
  bool is_worth_capturing(std::int64_t t) const;
  void capture(std::int64_t t);
  void meet();
  std::uint64_t addresses() const;
  void take_batch();
  // `sends`: the step, if its gradients may be sent during this backward pass; else -1.
  void pass(std::int64_t sends);
  // `value` is the mean loss of the examples. The backward pass starts at `root`: `gradient` is the
  // gradient of `weight` times the loss with respect to `root`.
  struct Loss {
    at::Tensor value;
    at::Tensor root, gradient;
  };
  bool ignores(const at::Tensor& labels) const;
  Loss loss_of(const at::Tensor& inputs, const at::Tensor& labels, double weight, nn::Tape* tape);
  void run_backward(const Loss& loss) const;
  void add_loss(const at::Tensor& mean);
  void record_examples(const nn::Tape& tape);
  void pass_one_by_one();
  at::Tensor clip(bool fixed);

  Parts in_;
  const config::TrainOptions& options_;
  CoreWatch cores_;
  bool captures_;        // steps are captured; the same on all workers
  bool failed_ = false;  // a capture of this worker failed
  bool one_by_one_;      // each example gets a pass of its own
  std::int64_t layout_ = -1;
  std::int64_t steps_ = 0;        // steps with this layout
  std::optional<device::Span> timed_;  // the step under way
  std::vector<device::Span> trial_;    // timed steps in the current form
  double told_seconds_ = 0;            // seconds of those steps, by the hook seconds_of_step
  double eager_seconds_ = 0;           // seconds of kTrialSteps uncaptured steps
  device::CaptureTurn own_turn_;  // used if TrainInputs::turn is null
  device::CaptureTurn& turn_;
  // Read and written by captured work.
  data::Batch batch_;
  at::Tensor loss_;   // summed over the micro-batches
  // The factors of BatchWeights for the current micro-batch; undefined if all weights are equal.
  at::Tensor gradient_weight_, loss_weight_;
  at::Tensor norm_;
  optim::Rates rates_;
  std::uint64_t captured_at_ = 0;  // addresses() at the capture
  device::Graph pass_graph_;
  device::Graph update_graph_;
};

}  // namespace abtrain::train
