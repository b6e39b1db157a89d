// Reduces a range of n flat buffers of equal length, in their order, and writes
// the result to any number of buffers, which may include the inputs.
//
// It accumulates in fp32 (fp64 for fp64; integers modulo 2^bits), divides by n
// for Mean, and rounds once. It works tile by tile, so one pass over memory is
// enough and there is no staging copy. Max gives NaN if any input is NaN. On
// CUDA the kernel is queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/blocks/reduce_buffers.h"

namespace abtrain::ops {

using kernels::ReduceOp;  // Sum, Mean or Max

// out[k][out_begin + i] = reduction over b of in[b][begin + i] for i < count.
// Tensors are contiguous, 1-D, of one dtype (fp32, fp64, fp16, bf16, int32,
// int64, uint8) and on one device. Mean of integers is rejected.
void reduce_buffers(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op);

}  // namespace abtrain::ops
