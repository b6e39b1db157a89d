// Statistics of the magnitudes of tensors that are coded in blocks. Launchers take device pointers
// and a cudaStream_t, and return a cudaError_t. The host has its own implementation, which adds up
// a block's elements in vector registers while it prefetches the next block.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"
#include "kernels/host_device.h"

namespace abtrain::kernels {

// The values computed for each tensor, in this order:
//   Above    the sum of the |u| that are above the tensor's cut (a threshold), and
//            their count. A NaN is above every cut, and every |u| is above a cut that
//            is NaN. If none is above, the sum is 0, or NaN for an infinite cut.
//   Largest  the largest |u|; infinity if any element is not finite
//   Moments  the sum of u^2, and the sum of |u|
enum class Statistic { Above, Largest, Moments };

ABT_HOST_DEVICE constexpr int values_of(Statistic statistic) {
  return statistic == Statistic::Largest ? 1 : 2;
}

struct Magnitudes {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::int64_t* firsts;  // first block of each tensor, then `count`
  std::int64_t tensors;
  const float* u;
  Statistic statistic;
  const float* cuts;  // for Above: one per tensor; null: all |u| count
  float* parts;       // scratch: values_of(statistic) per block
  float* results;     // values_of(statistic) per tensor
};
ABT_HOST_DEVICE inline float cut_of(const Magnitudes& job, std::int64_t tensor) {
  return job.cuts != nullptr ? job.cuts[tensor] : -1.0f;
}
ABT_HOST_DEVICE inline bool is_above(float magnitude, float cut) {
  return !(magnitude <= cut);
}
// Returns the count of a block's elements above the cut, given the count with the zeros that pad
// the block to kBlock elements.
ABT_HOST_DEVICE inline float without_padding(float count, float cut, const CodeBlock& block) {
  return is_above(0, cut) ? count - static_cast<float>(kBlock - block.count) : count;
}
ABT_HOST_DEVICE inline float sum_above(float sum, float count, float cut) {
  return count > 0 ? sum : cut * 0.0f;
}

ABT_LAUNCHER int magnitudes(const Magnitudes& job, void* stream);
void work_on_host(const Magnitudes& job);

}  // namespace abtrain::kernels
