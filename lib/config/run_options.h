// The whole configuration of a run, one struct per section.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "comm/back_end.h"
#include "compress/reducer_options.h"
#include "data/data_options.h"
#include "device/devices.h"
#include "methods/method_options.h"
#include "nn/model_options.h"
#include "optim/optim_options.h"
#include "orders/order_options.h"

namespace abtrain {
class Fields;
}

namespace abtrain::config {

struct TrainOptions {
  double epochs = 6;
  std::int64_t steps = 0;                 // if positive, overrides epochs
  double seconds = 0;                     // if positive, overrides both
  // kFloat or kBFloat16; nullopt: precision_on() decides (train/setup.h).
  std::optional<at::ScalarType> precision;
  std::optional<bool> cuda_graphs;        // nullopt: if possible
  std::int64_t accumulate = 1;            // micro-batches per step
  double label_smoothing = 0;
  double clip_norm = 0;             // 0: no clipping
  std::int64_t check_replicas = 0;  // compare replicas every N steps; 0: never
  std::int64_t log_every = 50;      // steps between `step` events
  bool tensorboard = true;          // an events file next to metrics.jsonl
  std::int64_t threads = 0;         // cores per worker; 0: divided evenly
  double timeout = 600;             // seconds that a collective may take
};

struct CheckpointOptions {
  Duration every = Duration::epochs(1);
  std::int64_t keep = 2;
};

struct EvaluateOptions {
  Duration every = Duration::epochs(1);  // 0: only at the end
  std::int64_t batch_size = 500;
  bool train = false;  // also the objective over all training examples
  // Batches per worker for recomputing the batch-norm statistics of the merged model; 0: the
  // workers' statistics are averaged.
  std::int64_t norm_batches = 0;
};

enum class OnLostWorker { Stop, Continue };

// How a step's examples are divided among the workers.
struct BalanceOptions {
  bool measures = false;  // `auto`: the run measures the speeds when it starts
  // One speed per worker, in any unit; empty: all alike. Measured speeds are stored here too, but
  // are not part of the configuration.
  std::vector<double> speeds;
  bool is_on() const {
    return measures || !speeds.empty();
  }
};

struct RunOptions {
  std::string name = "run";  // run folder: <output>/<name>
  std::uint64_t seed = 1;
  std::int64_t workers = 1;
  BalanceOptions balance;
  device::DeviceChoice device = device::DeviceChoice::Auto;
  std::optional<comm::BackEnd> comm;  // nullopt: the best that works
  OnLostWorker on_lost_worker = OnLostWorker::Stop;
  std::int64_t min_workers = 1;  // with fewer workers left, the run ends anyway
  std::string output = "runs";
  std::optional<std::string> branch_from;  // RUN or RUN@CHECKPOINT; nullopt: from the beginning
  data::DataOptions data;
  nn::ModelOptions model;
  methods::MethodOptions method;
  optim::OptimizerOptions optimizer;
  optim::ScheduleOptions schedule;
  compress::ReducerOptions reducer;
  orders::OrderOptions order;
  TrainOptions train;
  CheckpointOptions checkpoint;
  EvaluateOptions evaluate;
};

// Whether the example order needs the gradients of single examples.
bool balances_examples(const RunOptions& options);

// Whether the method trains factors beside frozen weights, as LoRA does.
bool trains_adapters(const RunOptions& options);
// Whether parts of the model are frozen (model.frozen, method.remainder). Checkpoints and model
// files then lack these parts, which come from the base, the model that the run began with.
bool keeps_base(const RunOptions& options);

// Each worker's batch size, in rank order: data.batch_size for all or, with known speeds, in
// proportion to these, with the same sum and at least 1 each.
std::vector<std::int64_t> batches_of(const RunOptions& options);
// "86, 85 and 85"; "64 each" if all are equal.
std::string batches_text(const std::vector<std::int64_t>& batches);

inline methods::MethodSetup method_setup(const RunOptions& o) {
  return {o.method, o.reducer, static_cast<int>(o.workers), o.evaluate.norm_batches > 0};
}

// The table of the keys with their ranges and help texts (base/options.h).
Fields fields_of(RunOptions& options);

}  // namespace abtrain::config
