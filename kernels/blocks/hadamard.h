// The unscaled Walsh-Hadamard transform H of each block of 2^log_size elements, in place: H H x =
// 2^log_size x. The stages have the strides 1, 2, 4, ..., in this order; each replaces pairs (a, b)
// by a + b and a - b. The CPU computes the same stages in the same order, so that results are
// bit-identical.
//
// A tile of up to 4,096 elements is transformed in shared memory (hadamard.cuh). Longer blocks take
// one more pass over global memory for every four further stages. `x` is a device pointer with
// 16-byte alignment; numel is a multiple of the block size. The launcher takes a cudaStream_t and
// returns a cudaError_t. The host has its own implementation (ops/cpu/hadamard.h), which keeps
// elements in vector registers between stages instead of in shared memory.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// Base-2 logarithm of the size of a tile, the most elements that one thread block transforms.
constexpr int kTileLog = 12;

// Computes the stages with strides of at least 2^kTileLog, if any.
ABT_LAUNCHER int hadamard_above_tile(float* x, std::int64_t numel, int log_size, void* stream);

}  // namespace abtrain::kernels
