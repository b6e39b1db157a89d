// The whole configuration of a run, one struct per section.
#pragma once

#include <cstdint>
#include <string>

#include "base/duration.h"
#include "compress/reducer_options.h"
#include "data/data_options.h"
#include "methods/method_options.h"
#include "nn/model_options.h"
#include "optim/optim_options.h"

namespace abtrain {
class Fields;
}

namespace abtrain::config {

struct TrainOptions {
  double epochs = 6;
  std::int64_t steps = 0;            // if positive, overrides epochs
  std::string precision = "fp32";    // fp32 | bf16
  std::string cuda_graphs = "auto";  // auto | on | off
  std::int64_t accumulate = 1;       // micro-batches per step
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
  bool train = false;  // also the objective over the training images
};

struct RunOptions {
  std::string name = "run";  // run folder: <output>/<name>
  std::uint64_t seed = 1;
  std::int64_t workers = 1;
  std::string device = "auto";  // auto | cpu | cuda
  std::string comm = "auto";    // auto | local | mpi | nccl
  std::string output = "runs";
  data::DataOptions data;
  nn::ModelOptions model;
  methods::MethodOptions method;
  optim::OptimizerOptions optimizer;
  optim::ScheduleOptions schedule;
  compress::ReducerOptions reducer;
  data::OrderOptions order;
  TrainOptions train;
  CheckpointOptions checkpoint;
  EvaluateOptions evaluate;
};

// Whether the order needs the gradients of single examples; with one image per
// step those are the gradients of the step.
inline bool balances_examples(const RunOptions& o) {
  return data::is_balanced(o.order) && o.order.unit == "example" &&
         o.data.batch_size * o.train.accumulate > 1;
}

inline methods::MethodSetup method_setup(const RunOptions& o) {
  return {o.method, o.reducer, static_cast<int>(o.workers)};
}

// The table of the keys with their ranges and help texts (base/options.h).
Fields fields_of(RunOptions& options);

}  // namespace abtrain::config
