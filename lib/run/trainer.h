// The one training loop: what a single worker does from its first step to
// the final, merged model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/meter.h"
#include "data/dataset.h"
#include "methods/method.h"
#include "nn/model.h"
#include "run/evaluation.h"
#include "run/run_log.h"
#include "run/run_options.h"

namespace abtrain::run {

// Where the time of a worker went. `train` = compute + communication + svd +
// data: the wall time of the loop without evaluations.
struct TimeSplit {
  double train = 0;
  double compute = 0;
  double communication = 0;  // in collectives, waiting for others included
  double svd = 0;
  double data = 0;           // waiting for batches
  double evaluate = 0;
};

// Bytes sent by a worker, metrics not counted but in `metrics`.
struct TrafficSplit {
  double gradient = 0, sync = 0, factors = 0, metrics = 0;
  double inside_groups = 0, between_groups = 0;
  double full_phase = 0, ab_phase = 0, switches = 0;
  double total() const {
    return gradient + sync + factors;
  }
};

struct WorkerFigures {
  TimeSplit seconds;
  TrafficSplit traffic;
  double trained_parameters = 0;  // that this worker trains at the end
};

struct TrainResult {
  std::unique_ptr<nn::Model> model;  // final; the same on every worker
  Score test;
  std::int64_t steps = 0;
  std::vector<methods::LayerRank> layers;
  std::vector<WorkerFigures> workers;  // of all workers, in rank order
};

struct TrainInputs {
  const RunOptions& options;
  const data::Dataset& dataset;     // `train` without the validation images
  const data::Images& validation;   // may be empty
  at::Device device;
  RunLog* log = nullptr;            // worker 0 only
  // For tests: called before each step of this worker.
  std::function<void(int rank, std::int64_t step, nn::Model&)> before_step;
};

// Collective over `world`. Throws Error(Diverged) naming step and parameter when
// a loss is not finite.
TrainResult train_worker(
    comm::Communicator& world, const TrainInputs& inputs);

// Steps in an epoch and in the run, for a training set of that many images.
struct RunLength {
  std::int64_t steps_per_epoch;
  std::int64_t steps;
};
RunLength run_length(const RunOptions& options, std::int64_t train_images);

nn::InputShape input_shape(const data::Dataset& dataset);

}  // namespace abtrain::run
