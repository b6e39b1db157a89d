// Encodes blocks as few-bit codes of their rotated coordinates, and decodes them (arithmetic:
// kernels/codes/block_code.h). Both take one pass over memory, unless a block is too large for one
// thread block of a GPU.
//
// Tensors are flat, contiguous and on one device. `u` and `out` are fp32 of any length; they are
// taken as blocks of `block` elements, padded with zeros to the next multiple of unit_of(block).
// Signs and roundings are counter-based, so results are bit-identical on every device and for any
// number of threads. A rounding uses 16 random bits; its mean is the coordinate to within 2^-17 of
// a code. On CUDA the kernels are queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/codes/block_code.h"
#include "kernels/codes/code_shards.h"

namespace abtrain::ops {

using kernels::Lanes;

// The smallest number of elements coded together: max(block, 128).
std::int64_t unit_of(std::int64_t block);

struct Coding {
  std::int64_t block = 1024;  // a power of two
  bool rotate = true;         // apply random signs and the Hadamard transform
  Lanes lanes = Lanes::Byte;
  float limit = 7.5;   // codes lie in offset - limit .. offset + limit,
  float offset = 7.5;  // which must lie in 0 .. 15
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t signs = 0;  // these two number the random streams of a seed and step
  std::uint32_t rounding = 0;
  std::int64_t first = 0;  // index of u[0] in the streams, a multiple of 128
};

// norms[b] is the 2-norm of block b in fp32; infinity if an element is not
// finite.
void block_norms(const at::Tensor& u, std::int64_t block, const at::Tensor& norms);

// Writes the codes of u. With `residual`, subtracts the decoded values from u. ranges: the range R
// of each block (kernels/codes/block_code.h), fp32. A block with a range below 1e-25 contributes
// nothing and stays in u; a block with a range that is not finite leaves 0 in u. codes: uint8 per
// element (Byte), int32 per pair (Pair), uint8 per pair (Nibble).
void quantize_blocks(
    const at::Tensor& u, const at::Tensor& ranges, const Coding& coding, bool residual,
    const at::Tensor& codes);

// The sums of the codes of `members` workers, laid out as in quantize_blocks(); `zero` is the sum
// that stands for 0. If `shards` is above 1 (Nibble only), the codes are cut into shards of whole
// units: shard i starts at unit floor(units * i / shards) and is followed by a tail of kTailBytes.
// dequantize_blocks() writes the decoded sums divided by `members`; a block with a range that is
// not finite becomes NaN.
struct Sums {
  at::Tensor codes;
  float zero = 0;
  float members = 1;
  int shards = 1;
};
void dequantize_blocks(
    const Sums& sums, const at::Tensor& ranges, const Coding& coding, const at::Tensor& out);

// in: uint8, one shard of 4-bit codes (8 stands for 0) from each of `members` workers (at most
// 4,096), one after another. out: the sums of the codes, clamped once to -7 .. 7 and stored as
// 4-bit codes, then the tail.
void sum_codes(const at::Tensor& in, int members, const at::Tensor& out);

// Adjusts `scale`, one fp32 value, to the share of the sums that were clamped. Reads this share
// from the shards' tails in `codes`, laid out as in Sums, in units of unit_of(block). Multiplies
// the scale by 1.1 if more than 4 % of the sums were clamped, divides it by 1.05 if fewer than 1 %
// were, and keeps it within 0.25 .. `shards`.
void update_scale(
    const at::Tensor& codes, std::int64_t units, std::int64_t block, int shards,
    const at::Tensor& scale);

}  // namespace abtrain::ops
