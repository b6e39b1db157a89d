// Reduces a range of n equally long flat buffers, in their order, and writes
// the result to any number of buffers (the inputs themselves among them).
//
// Accumulates in fp32 (fp64 for fp64; integers modulo 2^bits), divides by n for
// Mean, rounds once. Tile by tile, so that one pass over memory is all: no
// staging copy. Max gives NaN where any input is NaN. On CUDA the kernel is
// queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

enum class ReduceOp { Sum, Mean, Max };

// out[k][out_begin + i] = reduction over b of in[b][begin + i] for
// i < count. Contiguous 1-D tensors of one dtype (fp32, fp64, fp16, bf16,
// int32, int64, uint8) on one device. Mean of integers is refused.
void reduce_buffers(
    at::ArrayRef<at::Tensor> in,
    std::int64_t begin,
    std::int64_t count,
    at::ArrayRef<at::Tensor> out,
    std::int64_t out_begin,
    ReduceOp op);

}  // namespace abtrain::ops
