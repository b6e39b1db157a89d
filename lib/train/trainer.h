// The one training loop: what a single worker does from its first step to
// the final, merged model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/control/control.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "device/graph.h"
#include "methods/method.h"
#include "nn/model.h"
#include "run_folder/checkpoint.h"
#include "run_folder/run_log.h"
#include "train/evaluation.h"
#include "train/figures.h"

namespace abtrain::train {

struct TrainResult {
  std::unique_ptr<nn::Model> model;  // final; the same on every worker
  Score test;
  std::optional<double> train_loss;  // with evaluate.train
  std::int64_t steps = 0;            // done
  bool stopped = false;              // on request: nothing else is set then
  bool saved = false;                // and a checkpoint holds all
  std::vector<methods::LayerRank> layers;
  std::vector<WorkerFigures> workers;  // of all workers, in rank order
};

// For tests.
struct TrainHooks {
  // Before each step of this worker.
  std::function<void(int rank, std::int64_t step, nn::Model&)> before_step;
  // Steps on the CPU take the form that is captured on a GPU.
  bool capture_on_cpu = false;
  // When a worker is about to capture; device::CaptureFailed: as if that
  // failed.
  std::function<void(int rank, std::int64_t step)> capturing;
  run_folder::CheckpointWriter::Hook save;
};

struct TrainInputs {
  const config::RunOptions& options;
  const data::Dataset& dataset;    // `train` without the validation images
  const data::Images& validation;  // may be empty
  at::Device device;
  run_folder::RunLog* log = nullptr;  // worker 0 only
  // Images that lie on the devices; null: the host makes the batches.
  data::DeviceCopies* device_copies = nullptr;
  // Gives a worker's fresh model its weights; empty: from model.init and seed.
  std::function<void(nn::Model&)> initialise = {};
  // Called right before the first step.
  std::function<void()> begun = {};
  // Asked before each step whether to stop; null: never stops.
  comm::Control* control = nullptr;
  // One for all workers that share a GPU; null: this one has it alone.
  device::CaptureTurn* turn = nullptr;
  // Where checkpoints go; null: none are written.
  const run_folder::CheckpointWriter::Place* checkpoints = nullptr;
  // What to go on from, also with another number of workers; null: fresh.
  const run_folder::Checkpoint* resume = nullptr;
  TrainHooks hooks = {};
};

// Collective over `world`. Throws Error(Diverged) naming step and parameter
// when a loss is not finite; on a GPU one step later, since nothing waits for
// it.
TrainResult train_worker(comm::Communicator& world, const TrainInputs& inputs);

}  // namespace abtrain::train
