// One bit a number and a scale a block: sign compression with error feedback on
// both sides (Tang et al., "1-bit Adam", 2021, algorithm 1 line 7 on, here for
// gradients), one pass over memory each.
//
// A block of x is sent as s sign(x) with s = |x|_2 / sqrt(c), c the numbers
// that are alive; what is dead is sent as exactly 0. In a fresh record the
// sender says what is alive: what differs from zero. Otherwise both sides know
// it, as a word of bits a group. A block that holds a NaN or an infinity is NaN
// or infinite where it is read, dead numbers too.
//
// Wires are flat int32 tensors; records lie as in kernels/sign_codes.h. The
// same bits on CPU and GPU; on CUDA queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// Words of a part's records.
std::int64_t
sign_words(const CodeBlocks& blocks, CodeBlocks::Part part, bool fresh);

// u (fp32) becomes what the records do not say of it. alive: int32, groups().
void encode_signs(
    const at::Tensor& u,
    CodeBlocks& blocks,
    const at::Tensor& alive,
    const at::Tensor& wire,
    bool fresh);

// Of `part`: the mean of what `workers` workers sent (`in`, one after another)
// and the residual (fp32, span(part)) is sent in the same way; the residual
// becomes what is not said. In a fresh record alive is what is so to any
// worker, or has a residual.
void serve_signs(
    const at::Tensor& in,
    int workers,
    CodeBlocks& blocks,
    CodeBlocks::Part part,
    const at::Tensor& alive,
    const at::Tensor& residual,
    const at::Tensor& wire,
    bool fresh);

// All records to the estimate (fp32); fresh ones to alive too.
void decode_signs(
    const at::Tensor& wire,
    CodeBlocks& blocks,
    const at::Tensor& alive,
    const at::Tensor& estimate,
    bool fresh);

}  // namespace abtrain::ops
