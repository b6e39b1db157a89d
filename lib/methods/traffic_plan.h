// Bytes that a worker will send, computed from the configuration alone, as `plan` prints and
// docs/methods.md states them. The traffic meter agrees to the byte.
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
  std::vector<LayerShape> layers;  // that AB-training may factor, with their ranks
  // Slots of a block's gradients: in a dense phase, and in the AB phase for each role.
  std::vector<compress::Slot> dense, a, b;
  std::vector<int> weights;     // positions of the weights, ascending
  std::int64_t parameters = 0;  // of the dense model
  std::int64_t buffers = 0;     // running statistics
  int moments = 0;              // optimizer buffers per parameter
  int kept_moments = 0;         // of these, all but those of MomentKind::Other
  // The same model at an earlier method.rank.ratio of an annealed run; else empty.
  std::function<ModelSizes(double ratio)> at_ratio = {};
};

// Bytes per event, sent by one worker; metrics are not counted.
struct TrafficPlan {
  // The gradients of a step: the mean over the steps after reducer.dense_steps.
  std::int64_t full_step = 0;
  std::int64_t ab_step = 0;
  int ab_members = 1;  // workers that average the gradients of an AB step
  // Factors, dense parameters, moments and statistics; for diloco, all
  // fragments of a round.
  std::int64_t sync = 0;
  std::int64_t decompose = 0;  // of dense weights
  std::int64_t total = 0;      // the whole run
};

// A line of `plan`, with its key for programs. `bytes` null: nothing is sent.
struct TrafficRow {
  const char* label;
  const char* key;
  std::int64_t TrafficPlan::*bytes = nullptr;
};

// Bytes that a member of a group sends in steps first .. end - 1, besides averaged gradients.
// `numel`: parameters that the group trains from step `first` on. Empty if there are none.
using StepTraffic = std::function<std::int64_t(
    std::int64_t first, std::int64_t end, std::int64_t numel, compress::Member member)>;

}  // namespace abtrain::methods
