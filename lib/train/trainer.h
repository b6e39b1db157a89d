// The training loop of one worker, from its first step to the final, merged model. trainer.cpp has
// the steps; training_state.cpp saves and resumes the state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/run_length.h"
#include "data/batch_source.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "run_folder/recorder.h"
#include "train/divergence.h"
#include "train/evaluator.h"
#include "train/progress.h"
#include "train/readback.h"
#include "train/run_order.h"
#include "train/step_clock.h"
#include "train/train_inputs.h"
#include "train/training_step.h"
#include "train/waiting.h"

namespace abtrain::train {

class Trainer {
 public:
  Trainer(comm::Communicator& world, const TrainInputs& inputs);
  TrainResult run();
  // After run() has thrown: the worker's state, from which the remaining workers can continue;
  // empty if the run had not begun.
  std::optional<Survivor> survive();
  // The model that an evaluation of the checkpoint to resume from would score. Call it instead of
  // run(); collective.
  std::unique_ptr<nn::Model> model_of_checkpoint();

 private:
  void step(std::int64_t t);
  void log_step(std::int64_t t, methods::Phase phase);
  // Logs the losses since the last `step` event, if there are any.
  void log_window(std::int64_t steps);
  // Examples per step (tokens, if the data are a text) of all workers together.
  double items_per_step() const;
  void compare_workers(std::int64_t t);
  // Estimates the length of a run by the clock anew after t steps, if that is due.
  void agree_on_length(std::int64_t t);
  void log_workers(std::int64_t t, const std::vector<TimeSplit>& spent);
  void take_loss(const std::optional<Readback::Reading>& loss);
  void check(const char* what, const std::optional<Readback::Reading>& reading) const {
    check_finite(what, reading, world_->rank(), method_->block());
  }
  data::OrderSetting order_setting() const;
  // Stops the clock of training time, for an evaluation or a checkpoint. First waits until this
  // worker and all others have finished their steps; this still counts as training time.
  // Collective.
  Ledger::Pause pause();
  Evaluator::Result evaluate_now(std::int64_t t, bool last);
  // Figures that the method, the recorder, the loader and the training step have counted
  // themselves.
  WorkerFigures counts() const;

  // In training_state.cpp.
  void archive(state::Archive& archive);
  void archive_loop(state::Archive& archive);
  void archive_length(state::Archive& archive);
  void archive_base(state::Archive& archive);
  void archive_model(state::Archive& archive);
  std::int64_t resume(const run_folder::Checkpoint& from);
  std::int64_t resume_from(const run_folder::Checkpoint& from);
  std::int64_t inherit(Inheritance& from);
  void regroup(const run_folder::Checkpoint& from, std::int64_t t);
  // Starts from the states of a run with another number of workers. `old` holds one state per
  // replica group.
  void regroup(std::vector<state::State>& old, std::int64_t t);
  void average_buffers(std::vector<state::State>& all);
  // Branches off another run after t steps: makes this run independent of that run's folder.
  void branch(std::int64_t t);
  bool saves_after(std::int64_t t);
  bool save(std::int64_t t);

  const TrainInputs& in_;
  const config::RunOptions& options_;
  Ledger ledger_;
  std::unique_ptr<comm::Communicator> world_;
  RunLength length_;
  std::optional<StepClock> clock_;               // only in a run by the clock
  const std::vector<std::int64_t> all_batches_;  // batch size of each worker
  std::unique_ptr<nn::Model> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::Schedule schedule_;
  run_folder::Recorder recorder_;
  std::unique_ptr<methods::Method> method_;
  Evaluator evaluator_;
  RunOrder order_;
  std::unique_ptr<data::BatchSource> batches_;
  std::unique_ptr<BatchWeights> weights_;  // null: all batches have the same weight
  std::optional<TrainingStep> step_;
  Recurring evaluations_;
  Recurring saves_;
  std::optional<run_folder::CheckpointWriter> writer_;
  Progress progress_;
  methods::Phase window_phase_ = {};  // of the last step since the last `step` event
  Readback loss_;
  Readback norm_;
  // For runs by the clock: whether the last step had a collective of all workers, and the shortest
  // time so far of a Method::after_step() that acted (synchronized, decomposed, ...).
  bool meets_ = false;
  std::optional<double> act_seconds_;
  bool replicas_due_ = false;  // a comparison of replicas is due
  std::int64_t compare_every_;
  SlowWatch slow_watch_;
};

// Steps already done at the start, according to the checkpoint if there is one.
std::int64_t first_step(const TrainInputs& inputs);

// Trains as one worker of `world`; collective. Throws Error(Diverged) naming step and parameter
// when a loss is not finite; on a GPU this comes one step later, since the host does not wait for
// the loss.
TrainResult train_worker(comm::Communicator& world, const TrainInputs& inputs);

// Trains with options.workers threads on one device, which they share, and
// returns the results of all, in rank order. Replaces inputs.turn. Errors: as
// comm::run_workers().
std::vector<TrainResult> train_threads(TrainInputs inputs);

}  // namespace abtrain::train
