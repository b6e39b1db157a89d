// Walsh-Hadamard transform in place of each block of 2^log_size numbers, not
// scaled: H H x = 2^log_size x. Stages in the order of their strides 1, 2, 4,
// ...; of a pair (a, b) come a + b and a - b. So the bits are the CPU form's.
//
// A tile of up to 4,096 numbers is transformed in shared memory; longer blocks
// take a further pass over memory for each four stages. `x` is a device
// pointer, 16-byte aligned, numel a multiple of the block. Returns a
// cudaError_t as int.
#pragma once

#include <cstdint>

namespace abtrain::kernels {

// The largest block that one thread block transforms.
constexpr int kTileLog = 12;

int hadamard(float* x, std::int64_t numel, int log_size, void* stream);

// The stages from stride 2^kTileLog on; nothing where there are none.
int hadamard_above_tile(
    float* x,
    std::int64_t numel,
    int log_size,
    void* stream);

}  // namespace abtrain::kernels
