// Bytes that a worker will send, from the configuration alone: what `plan`
// prints and docs/methods.md states. The meter counts the same to the byte.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/groups.h"
#include "compress/bucket.h"
#include "compress/reducer_options.h"
#include "methods/method_options.h"
#include "nn/model.h"

namespace abtrain::methods {

// What of a model decides its traffic.
struct ModelSizes {
  struct Layer {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t rank = 0;  // after a decomposition; 0: stays dense
  };
  std::vector<Layer> layers;     // that AB-training may factor
  // Of a block's gradients: dense, and in the AB phase of each role.
  std::vector<compress::Slot> dense, a, b;
  std::vector<int> weights;      // their positions, ascending
  std::int64_t parameters = 0;   // of the dense model
  std::int64_t buffers = 0;      // running statistics
  int moments = 0;               // optimizer buffers a parameter
};

// Per event, sent by one worker; metrics not counted.
struct TrafficPlan {
  // A step's gradients: the mean past reducer.dense_steps.
  std::int64_t full_step = 0;
  std::int64_t ab_step = 0;
  // Factors, dense parameters, moments, statistics; of diloco all fragments of a
  // round.
  std::int64_t sync = 0;
  std::int64_t decompose = 0;  // of dense weights
  std::int64_t total = 0;      // the whole run
};

// What member `member` of `members` workers sends beside the gradients that they
// average in step t, of `numel` parameters that they have trained since step
// `since`.
using StepTraffic = std::function<std::int64_t(
    std::int64_t t,
    std::int64_t since,
    std::int64_t numel,
    int members,
    int member)>;

// Worker `rank` of `workers`.
TrafficPlan plan_traffic(
    const MethodOptions& options,
    const compress::ReducerOptions& reducer,
    const ModelSizes& sizes,
    int workers,
    int rank,
    const RunLength& run,
    const StepTraffic& beside = {});

// Of local-sgd and diloco, what plan_traffic gives.
TrafficPlan plan_local_traffic(
    const MethodOptions& options,
    const compress::ReducerOptions& reducer,
    const ModelSizes& sizes,
    int workers,
    int rank,
    const RunLength& run,
    const StepTraffic& beside = {});

}  // namespace abtrain::methods
