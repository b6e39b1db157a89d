// The Walsh-Hadamard transform of each block of 2^log_size elements, in place
// and not scaled: H H x = 2^log_size x. The stages have the strides 1, 2, 4,
// ..., in this order; each replaces a pair (a, b) by a + b and a - b. The bits
// are therefore the same as on the CPU.
//
// A tile of up to 4,096 elements is transformed in shared memory (hadamard.cuh);
// longer blocks take another pass over memory for every four stages. `x` is a
// device pointer with 16-byte alignment; numel is a multiple of the block size.
// The launches are asynchronous on `stream` (a cudaStream_t) and return a
// cudaError_t as an int. The host has a form of its own, for vector registers in
// place of shared memory (ops/cpu/hadamard.h).
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// The largest block that one thread block transforms.
constexpr int kTileLog = 12;

// The stages with stride 2^kTileLog and more, if there are any.
ABT_LAUNCHER int hadamard_above_tile(float* x, std::int64_t numel, int log_size, void* stream);

}  // namespace abtrain::kernels
