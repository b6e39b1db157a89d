// Codes elements as -t, 0 or +t with one threshold t per tensor: MXNet's 2-bit
// compression, and the codes of Hylo's linear layers. What is not sent stays
// in u. ops/level_codes.h says why there are two such codecs.
//
//   u >= t: +t, u becomes u - t; u <= -t: -t, u becomes u + t; otherwise 0.
//
// Wires are flat; kernels/codes/twobit_codes.h gives the layout of codes and
// sums. An element that is not finite makes the mean NaN, except in the byte
// form, where t itself must show it. CPU and GPU give the same bits, sums
// included. On CUDA the kernels are queued on this thread's current stream.
// Thresholds are fp32, one per tensor of the table, on u's device: nothing is
// read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

#include "kernels/codes/twobit_codes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

using kernels::CodeForm;
using kernels::CodeWire;

// More workers are refused: a sum that marks a non-finite element is recognized by its magnitude.
inline constexpr int kMaxCodeWorkers = 4096;

// Number of bytes in a part's codes.
inline std::int64_t code_bytes(const CodeBlocks& blocks, CodeBlocks::Range part, CodeForm form) {
  const std::int64_t numel = kernels::kGroup * blocks.groups(part);
  return form == CodeForm::Bytes ? numel : kernels::packed_bytes(numel);
}
// wire: uint8.
void encode_threshold(
    const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& thresholds, const at::Tensor& wire,
    CodeForm form);

// Bits per sum of n codes: ceil(log2(2 n + 1)).
inline int sum_bits(int workers) {
  return static_cast<int>(std::bit_width(2u * static_cast<unsigned>(workers)));
}
// Number of words in a part's sums.
inline std::int64_t sum_words(const CodeBlocks& blocks, CodeBlocks::Range part, int workers) {
  return sum_bits(workers) * blocks.groups(part);
}
// Sums n workers' two-bit codes of `part`. wire: int32.
void pack_sums(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& wire);
// The mean (fp32) over the workers: of their two-bit codes (`in`: uint8, one
// worker after another), of all their sums (int32, from pack_sums), or of the
// sums of their byte codes (uint8; at most 127 workers).
void average_codes(
    const at::Tensor& in, CodeWire wire, int workers, CodeBlocks& blocks,
    const at::Tensor& thresholds, const at::Tensor& estimate);

}  // namespace abtrain::ops
