// Inputs and results of a worker's training.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/control/control.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "device/graph.h"
#include "methods/method.h"
#include "nn/model.h"
#include "run_folder/checkpoint.h"
#include "run_folder/run_log.h"
#include "train/ledger.h"
#include "train/score.h"
#include "train/survivor.h"

namespace abtrain::train {

struct TrainResult {
  std::unique_ptr<nn::Model> model = {};  // final, the same on every worker
  Score test = {};
  std::optional<Score> before = {};       // score of the initial weights, with model.weights
  std::optional<double> train_loss = {};  // if evaluate.train is set
  std::int64_t steps = 0;                 // steps done
  // Seconds of each step, including its evaluation and its checkpoint, if TrainInputs::time_steps
  // is set.
  std::vector<double> step_seconds = {};
  bool stopped = false;  // stopped on request; only `steps` and `saved` are set then
  bool saved = false;    // if stopped: a checkpoint holds everything
  std::vector<methods::LayerRank> layers = {};
  std::vector<WorkerFigures> workers = {};  // in rank order
};

// Hooks with which tests observe and change a run; nothing else sets any.
struct TrainHooks {
  // Called before each step of this worker.
  std::function<void(int rank, std::int64_t step, nn::Model&)> before_step;
  // For runs by the clock: seconds of training in the first t steps, in place of the clock's.
  std::function<double(std::int64_t t)> seconds_after;
  // Runs steps on the CPU in the form that is captured on a GPU.
  bool capture_on_cpu = false;
  // Replaces the timing of steps: gets whether the step was captured, and returns its seconds. If
  // set, captured and other steps are compared on the CPU too.
  std::function<double(bool captured)> seconds_of_step;
  // Called when a worker is about to capture a CUDA graph. If it throws device::CaptureFailed, the
  // capture counts as failed.
  std::function<void(int rank, std::int64_t step)> capturing;
  run_folder::CheckpointWriter::Hook save;
  double slow_window = 5;  // seconds (train/waiting.h)
};

struct TrainInputs {
  const config::RunOptions& options;
  const data::Dataset& dataset;      // `train` without the validation images
  const data::Examples& validation;  // may be empty
  at::Device device;
  run_folder::RunLog* log = nullptr;  // worker 0 only
  // Images kept on the devices; null: the host makes the batches.
  data::DeviceCopies* device_copies = nullptr;
  // Sets the weights of a worker's fresh model; empty: they are made from model.init and seed.
  std::function<void(nn::Model&)> initialize = {};
  // Called right before the first step.
  std::function<void()> begun = {};
  // Asked before each step whether to stop, and told how the worker has spent its time; null: never
  // stops.
  comm::Control* control = nullptr;
  // Hosts of all workers, in rank order; for messages.
  std::vector<std::string> hosts = {};
  // The lock for captures, shared by all workers on one GPU; null: this worker has the GPU to
  // itself.
  device::CaptureTurn* turn = nullptr;
  // How to write checkpoints; null: none are written.
  const run_folder::CheckpointWriter::Options* checkpoints = nullptr;
  // The checkpoint to resume from, possibly of another number of workers; null:
  // a fresh start.
  const run_folder::Checkpoint* resume = nullptr;
  // The surviving states of this run after the loss of a worker; used in place of `resume`.
  Inheritance* inherited = nullptr;
  // Receives this worker's state if the loss of another worker ends the run; null: the run cannot
  // continue then.
  std::optional<Survivor>* survivor = nullptr;
  bool longer = false;      // the run extends the checkpoint's run (train/resume.h)
  bool branches = false;    // the run branches off the checkpoint's run (train/branch.h)
  bool time_steps = false;  // sets TrainResult::step_seconds
  TrainHooks hooks = {};
};

}  // namespace abtrain::train
