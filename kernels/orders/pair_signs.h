// The signs of PairBalance (Cooper et al., arXiv 2302.00845), computed from scalar products (see
// ops/pair_signs.h). Pointers are device pointers; the launch is asynchronous on `stream` (a
// cudaStream_t) and returns a cudaError_t as an int. The host has its own implementation, a plain
// sequential loop, whereas the threads of a GPU hand signs to one another.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

constexpr int kMaxPairRows = 1024;

// `triangle` is a lower triangle: row j begins at element j (j + 1) / 2.
struct PairSigns {
  const float* triangle;
  int rows;  // 1 .. kMaxPairRows
  std::int8_t* signs;
};
ABT_LAUNCHER int pair_signs(const PairSigns& job, void* stream);
void work_on_host(const PairSigns& job);

}  // namespace abtrain::kernels
