// One bit per element and one scale per block: sign compression with error
// feedback on both sides (Tang et al., "1-bit Adam", 2021, algorithm 1 from
// line 7 on, here for gradients). Each operation is one pass over memory.
//
// A block of x is sent as s sign(x) with s = |x|_2 / sqrt(c), where c is the
// number of elements that are alive; dead elements are sent as exactly 0. In a
// fresh record the sender says which elements are alive: those that differ from
// zero. Otherwise both sides know them already, as one word of bits per group.
// A block that holds a NaN or an infinity decodes to NaN or infinity
// throughout, dead elements included.
//
// Wires are flat int32 tensors; kernels/codes/sign_codes.h gives the layout of
// records. CPU and GPU give the same bits. On CUDA the kernels are queued on
// this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// Number of words in a part's records.
std::int64_t sign_words(const CodeBlocks& blocks, CodeBlocks::Range part, bool fresh);

// Encodes u (fp32) and leaves in it what the records do not express. alive:
// int32, groups().
void encode_signs(
    const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& wire,
    bool fresh);

// For `part`: adds the mean of what `workers` workers sent (`in`, one after
// another) to the residual (fp32, span(part)) and encodes the sum in the same
// way; the residual keeps what the records do not express. In a fresh record,
// an element is alive if it is alive for any worker or has a residual.
void serve_signs(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& alive, const at::Tensor& residual, const at::Tensor& wire, bool fresh);

// Decodes all records into the estimate (fp32), and fresh ones into alive too.
void decode_signs(
    const at::Tensor& wire, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& estimate,
    bool fresh);

}  // namespace abtrain::ops
