// Chunks: runs of C neighbouring numbers of a flat fp32 tensor u, the last one
// may be shorter. What chunk-wise sparsification does to them, each in one pass
// over memory. A chunk of one number is a coordinate.
//
// On CUDA kernels are queued on this thread's current stream. All forms give
// the same bits: the squares of a norm are added by explicit fma in 32 lanes
// (lane l takes the numbers l, l + 32, ... of its chunk), which are then added
// in halves (kernels/chunk_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

constexpr std::int64_t chunk_count(std::int64_t numel, std::int64_t chunk) {
  return (numel + chunk - 1) / chunk;
}

// u += g (u = g where not `add`); norms[c], fp32, is the sum of squares of
// chunk c of the new u. Flat fp32, u and g of one length.
void add_with_norms(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms);

// Chunk indices[j] of u, over `members` and rounded to fp16, becomes the j-th C
// numbers of `wire` (behind the end of u: 0); members times the rounded numbers
// are subtracted from u. indices: int32, ascending, each once (checked on the
// CPU only). `wire`: fp16, indices x C numbers.
void take_chunks(
    const at::Tensor& u,
    const at::Tensor& indices,
    std::int64_t chunk,
    int members,
    const at::Tensor& wire);

// The reverse, as in take_chunks(): the numbers of `wire` are added to `out`,
// or take their place there.
enum class Put { Add, Set };
void put_chunks(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how);

}  // namespace abtrain::ops
