// PairBalance (Cooper et al., arXiv 2302.00845): rows are added to a running
// sum one after the other, each with the sign that keeps the sum small
// (ops/pair_balance.h has the meaning). Pointers are device pointers; launches
// are asynchronous on `stream` (a cudaStream_t) and return a cudaError_t as
// int.
#pragma once

#include <cstdint>

#include "kernels/code_blocks.h"

namespace abtrain::kernels {

// Row j is that of worker j. A scalar product is added up in blocks of kBlock
// numbers (lane i of kLanes has numbers i and i + kLanes), in fp32; over blocks
// in fp64 (lane i of kTensorLanes has blocks i, i + kTensorLanes, ...).
struct PairBalance {
  float* sum;         // `numel` numbers
  const float* rows;  // workers x numel
  std::int64_t numel;
  int workers;
  float* parts;        // room for 1 a block
  std::int8_t* signs;  // one a worker: 1 or -1
};
int pair_balance(const PairBalance& job, void* stream);

}  // namespace abtrain::kernels
