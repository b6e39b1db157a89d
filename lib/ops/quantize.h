// Blocks of numbers to few-bit codes of their rotated coordinates, and back
// (kernels/block_code.h has the arithmetic): a pass over memory each.
//
// Flat contiguous tensors on one device; `u` and `out` fp32 of any length,
// taken as blocks of `block` numbers with zeros behind them, up to the next
// multiple of unit_of(block). Signs and roundings are counter-based, so the
// bits of all but a norm's root-of-sums over larger partitions are the same on
// every device and number of threads. A rounding has 16 random bits: its mean
// is the number's to 2^-17 of a code. On CUDA kernels are queued on this
// thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/block_code.h"
#include "kernels/code_shards.h"

namespace abtrain::ops {

using kernels::Lanes;

// So many numbers, at least, are coded together: max(block, 128).
std::int64_t unit_of(std::int64_t block);

struct Coding {
  std::int64_t block = 1024;  // a power of two
  bool rotate = true;         // signs and Hadamard transform
  Lanes lanes = Lanes::Byte;
  float limit = 7.5;   // codes are within offset - limit .. offset + limit,
  float offset = 7.5;  // 0 .. 15
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t signs = 0;  // streams of the seed and step
  std::uint32_t rounding = 0;
  std::int64_t first = 0;  // place of u[0] in the streams: a multiple of 128
};

// norms[b]: root of block b's sum of squares, in fp32; infinity where a number
// is not finite.
void block_norms(
    const at::Tensor& u,
    std::int64_t block,
    const at::Tensor& norms);

// codes of u; with `residual` u becomes u less what its codes stand for. ranges
// (a block each, fp32): R of block_code.h. A block whose range is below 1e-25
// contributes nothing and stays in u; one whose range is not finite leaves 0.
// codes: uint8 a number (Byte), int32 a pair, uint8 a pair (Nibble).
void quantize_blocks(
    const at::Tensor& u,
    const at::Tensor& ranges,
    const Coding& coding,
    bool residual,
    const at::Tensor& codes);

// What the codes' sum stands for, over `members`; `zero`: the sum that stands
// for 0. NaN in blocks whose range is not finite. shards above 1 (Nibble): runs
// of whole units, run i from unit floor(units * i / shards) on, with a tail of
// kTailBytes behind each.
struct Sums {
  at::Tensor codes;
  float zero = 0;
  float members = 1;
  int shards = 1;
};
void dequantize_blocks(
    const Sums& sums,
    const at::Tensor& ranges,
    const Coding& coding,
    const at::Tensor& out);

// in: one shard of 4-bit codes (8 stands for 0) of each of `members` (at most
// 4,096), one behind another, uint8. out: their sums clamped once to -7 .. 7 as
// such codes, and the tail.
void sum_codes(const at::Tensor& in, int members, const at::Tensor& out);

// The controller: of the shards' tails in `codes` (as in Sums), for units of
// unit_of(block). scale: one fp32 number, times 1.1 where more than 4 % of the
// sums were clamped, by 1.05 where fewer than 1 %; within 0.25 and `shards`.
void update_scale(
    const at::Tensor& codes,
    std::int64_t units,
    std::int64_t block,
    int shards,
    const at::Tensor& scale);

}  // namespace abtrain::ops
