// The order in which the squares of a chunk's elements are summed. Both CPU vectors and a GPU's
// threads can follow it.
#pragma once

#include "kernels/host_device.h"

namespace abtrain::kernels {

// The squares are added in kNormLanes partial sums, the lanes: lane l adds the squares of elements
// l, l + kNormLanes, ... of the chunk.
constexpr int kNormLanes = 32;

// Returns the sum of the lanes: adds their upper half to their lower half until one lane is left.
// Overwrites them.
ABT_HOST_DEVICE inline float sum_of_lanes(float* lanes) {
  for (int half = kNormLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      lanes[l] += lanes[l + half];
    }
  }
  return lanes[0];
}

}  // namespace abtrain::kernels
