// Chooses the signs of PairBalance, a method to order training examples (Cooper et al., arXiv
// 2302.00845), from inner products of rows (see ops/pair_signs.h). The launcher takes device
// pointers and a cudaStream_t, and returns a cudaError_t. The host has its own implementation, a
// plain sequential loop, whereas the threads of a GPU hand signs to one another.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

constexpr int kMaxPairRows = 1024;

// Element j (j + 1) / 2 + i of `triangle` is the inner product of row j with row i for i < j, and
// with the sum before the first row for i = j.
struct PairSigns {
  const float* triangle;
  int rows;  // 1 .. kMaxPairRows
  std::int8_t* signs;
};
ABT_LAUNCHER int pair_signs(const PairSigns& job, void* stream);
void work_on_host(const PairSigns& job);

}  // namespace abtrain::kernels
