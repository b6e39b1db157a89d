// Bytes that a worker will send, computed from the configuration alone, by the formulas of
// docs/methods.md. `abtrain plan` prints them; the traffic meter of a run counts exactly as many.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compress/bucket.h"
#include "compress/volume.h"
#include "methods/ab/gather_layers.h"

namespace abtrain::methods {

// The properties of a model that decide its traffic.
struct ModelSizes {
  std::vector<LayerShape> layers;  // those that AB-training may factor, with ranks
  // Slots of the gradients in a dense phase, and in an AB phase for groups of role A and of role B.
  // If groups train both factors, a and b have the slots of both.
  std::vector<compress::Slot> dense, a, b;
  std::vector<int> weights;     // positions among all parameters, ascending
  std::int64_t parameters = 0;  // trained ones of the dense model
  std::int64_t buffers = 0;     // elements of running statistics
  int moments = 0;              // optimizer buffers per parameter
  int kept_moments = 0;         // of these, all but those of MomentKind::Other
  // If ranks are annealed: the sizes at an earlier value of method.rank.ratio; else empty.
  std::function<ModelSizes(double ratio)> at_ratio = {};
};

// Bytes that one worker sends per event, without those for metrics.
struct TrafficPlan {
  // The gradients of a step after the first reducer.dense_steps.
  std::int64_t full_step = 0;
  std::int64_t ab_step = 0;
  int ab_members = 1;  // workers that average the gradients of an AB step
  // Factors, dense parameters, moments and statistics; for diloco, all
  // fragments of a round.
  std::int64_t sync = 0;
  std::int64_t decompose = 0;  // of dense weights
  std::int64_t total = 0;      // the whole run
};

// A line of `abtrain plan`, and its key in JSON output. `bytes` null: nothing is sent.
struct TrafficRow {
  const char* label;
  const char* key;
  std::int64_t TrafficPlan::*bytes = nullptr;
};

// Bytes that a member of a group sends in steps first .. end - 1 besides averaged gradients, to
// choose the order of examples. `numel`: parameters that the group trains. Empty: none are sent.
using StepTraffic = std::function<std::int64_t(
    std::int64_t first, std::int64_t end, std::int64_t numel, compress::Member member)>;

}  // namespace abtrain::methods
