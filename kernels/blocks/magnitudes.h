// Statistics of the magnitudes of tensors that are coded in blocks. Pointers
// are device pointers; launches are asynchronous on `stream` (a cudaStream_t)
// and return a cudaError_t as an int. The host has a form of its own: it adds
// sixteen rows of a block in registers while the next block is fetched from
// memory.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"
#include "kernels/host_device.h"

namespace abtrain::kernels {

// Per tensor: the sum of |u|; the largest |u|, infinite if any number is not
// finite; or the sum of u^2 and the sum of |u|.
enum class Statistic { Sum, Largest, Moments };

ABT_HOST_DEVICE constexpr int values_of(Statistic statistic) {
  return statistic == Statistic::Moments ? 2 : 1;
}

struct Magnitudes {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::int64_t* firsts;  // first block of each tensor, then `count`
  std::int64_t tensors;
  const float* u;
  Statistic statistic;
  float* parts;    // scratch: values_of(statistic) per block
  float* results;  // values_of(statistic) per tensor
};
ABT_LAUNCHER int magnitudes(const Magnitudes& job, void* stream);
void work_on_host(const Magnitudes& job);

}  // namespace abtrain::kernels
