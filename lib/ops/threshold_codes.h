// Numbers as -t, 0 or +t with a threshold t a tensor: MXNet's 2-bit compression
// and the codes of Hylo's linear layers; what is not sent stays behind.
//
//   u >= t: +t, u becomes u - t; u <= -t: -t, u becomes u + t; otherwise 0.
//
// Wires are flat; how codes and sums lie is in kernels/threshold_codes.h. A
// number that is not finite makes the mean NaN, save in the byte form, where t
// itself must show it. The same bits on CPU and GPU, sums too; on CUDA queued
// on this thread's current stream. Thresholds are fp32, one a tensor of the
// table, on u's device: nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// sums (fp32, 2 a tensor): sum of u^2, sum of |u|, of one tensor after another.
void moments(const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& sums);

enum class CodeForm { TwoBits, Bytes };

// Bytes of a part's codes.
inline std::int64_t
code_bytes(const CodeBlocks& blocks, CodeBlocks::Part part, CodeForm form) {
  return (form == CodeForm::TwoBits ? 8 : 32) * blocks.groups(part);
}
// wire: uint8.
void encode_threshold(
    const at::Tensor& u,
    CodeBlocks& blocks,
    const at::Tensor& thresholds,
    const at::Tensor& wire,
    CodeForm form);

// Of n workers' two-bit codes (`in`, one worker after another) the mean, fp32.
void average_codes(
    const at::Tensor& in,
    int workers,
    CodeBlocks& blocks,
    const at::Tensor& thresholds,
    const at::Tensor& estimate);

// Bits of a sum of n codes: ceil(log2(2 n + 1)).
inline int sum_bits(int workers) {
  return static_cast<int>(std::bit_width(2u * static_cast<unsigned>(workers)));
}
// Words of a part's sums.
inline std::int64_t
sum_words(const CodeBlocks& blocks, CodeBlocks::Part part, int workers) {
  return sum_bits(workers) * blocks.groups(part);
}
// Of n workers' two-bit codes of `part` their sums; wire: int32.
void pack_sums(
    const at::Tensor& in,
    int workers,
    CodeBlocks& blocks,
    CodeBlocks::Part part,
    const at::Tensor& wire);
// Of all sums the mean.
void unpack_sums(
    const at::Tensor& wire,
    int workers,
    CodeBlocks& blocks,
    const at::Tensor& thresholds,
    const at::Tensor& estimate);
// Of all sums of bytes (uint8) the mean.
void unpack_byte_sums(
    const at::Tensor& wire,
    int workers,
    CodeBlocks& blocks,
    const at::Tensor& thresholds,
    const at::Tensor& estimate);

}  // namespace abtrain::ops
