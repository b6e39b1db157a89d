// What a run cost each worker: seconds, bytes, parameters.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace abtrain::train {

// Where the time of a worker went, in seconds. `train` = compute +
// communication + svd + data: the wall time of the loop without evaluations and
// checkpoints.
struct TimeSplit {
  double train = 0;
  double compute = 0;
  double communication = 0;  // in collectives, waits for others included
  double svd = 0;
  double data = 0;  // waiting for batches
  double evaluate = 0;
  double checkpoint = 0;
};

// Bytes sent by a worker. Metrics are counted in `metrics` only.
struct TrafficSplit {
  double gradient = 0, sync = 0, factors = 0, orders = 0, metrics = 0;
  double inside_groups = 0, between_groups = 0;
  double full_phase = 0, ab_phase = 0, switches = 0;
  double total() const {
    return gradient + sync + factors + orders;
  }
};

// Cost of averaging gradients, in seconds: encode and decode are part of
// `compute`, collective is part of `communication`. Also its errors.
struct ReducerSplit {
  double encode = 0, collective = 0, decode = 0;
  // Sum of the vNMSE of the averaged gradient, and number of its evaluations.
  double vnmse_sum = 0, vnmse_count = 0;
};

struct WorkerFigures {
  TimeSplit seconds;
  ReducerSplit reducer;
  TrafficSplit traffic;
  double trained_parameters = 0;  // by this worker, at the end
};

// The figures of all workers, in rank order. Collective; counts as metrics.
std::vector<WorkerFigures> gather_figures(
    comm::Communicator& world,
    const WorkerFigures& own);

}  // namespace abtrain::train
