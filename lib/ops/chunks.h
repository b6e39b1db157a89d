// The operations of chunk-wise sparsification, each one pass over memory. A chunk consists of C
// adjacent elements of a flat fp32 tensor u; the last chunk may have fewer. If C is 1, a chunk is a
// coordinate.
//
// On CUDA the kernels are queued on this thread's current stream. CPU and GPU results are
// bit-identical: the squares of a norm are added by explicit fma in 32 lanes (lane l takes elements
// l, l + 32, ... of the chunk), and then the upper half of the lanes is added to the lower half
// until one is left (kernels/blocks/chunk_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

constexpr std::int64_t chunk_count(std::int64_t numel, std::int64_t chunk) {
  return (numel + chunk - 1) / chunk;
}

// u += g (u = g if not `add`). norms[c], fp32, is the sum of squares of chunk c
// of the new u. u and g are flat fp32 tensors of equal length.
void add_with_norms(
    const at::Tensor& u, const at::Tensor& g, bool add, std::int64_t chunk,
    const at::Tensor& norms);

// For each j, divides chunk indices[j] of u by `members` (the number of workers in the mean),
// rounds it to fp16, and writes it to `wire` from element j C on (zeros for elements past the end
// of u). Then subtracts members times the rounded values from u. indices: int32, ascending, without
// duplicates (checked on the CPU only). wire: fp16, indices x C elements.
void take_chunks(
    const at::Tensor& u, const at::Tensor& indices, std::int64_t chunk, int members,
    const at::Tensor& wire);

// The reverse of take_chunks(): adds the elements of `wire` to the chunks of `out`, or overwrites
// the chunks with them.
enum class Put { Add, Set };
void put_chunks(
    const at::Tensor& wire, const at::Tensor& indices, std::int64_t chunk, const at::Tensor& out,
    Put how);

}  // namespace abtrain::ops
