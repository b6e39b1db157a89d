// Inputs, codes and codings for tests of the quantizer of ops/quantize.h.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <cstdint>

#include "ops/quantize.h"
#include "tensors.h"

namespace abtrain::ops {

// What a block's norm is multiplied by, to get its range.
constexpr float kRange = 3.2971933456919635F;

// (-1)^(number of ones that i and j have in common).
inline int hadamard_entry(std::int64_t i, std::int64_t j) {
  return std::popcount(static_cast<std::uint64_t>(i & j)) % 2 == 0 ? 1 : -1;
}

inline std::int64_t padded(std::int64_t numel, std::int64_t block) {
  const std::int64_t unit = unit_of(block);
  return (numel + unit - 1) / unit * unit;
}

inline at::Tensor norms_of(const at::Tensor& u, std::int64_t block) {
  const at::Tensor norms = at::empty({padded(u.numel(), block) / block}, u.device());
  block_norms(u, block, norms);
  return norms;
}

inline at::Tensor code_buffer(std::int64_t numel, const Coding& c) {
  const std::int64_t all = padded(numel, c.block);
  return at::zeros(
      {c.lanes == Lanes::Byte ? all : all / 2}, c.lanes == Lanes::Pair ? at::kInt : at::kByte);
}

struct Case {
  std::int64_t block;
  bool rotate;
  Lanes lanes;
};

inline Coding coding_of(const Case& c) {
  Coding coding{.block = c.block, .rotate = c.rotate, .lanes = c.lanes};
  coding.seed = 0x123456789abcdef;
  coding.step = 41;
  coding.signs = 3;
  coding.rounding = 7 << 16 | 3;
  coding.first = 256;
  if (c.lanes == Lanes::Nibble) {
    coding.limit = 7;
    coding.offset = 8;
  }
  return coding;
}

// The codes of u, what they leave of it, and what they stand for.
struct Quantized {
  at::Tensor ranges, codes, rest, value;
};

inline Quantized quantize_and_back(const at::Tensor& u, const Coding& coding) {
  const Quantized q{
      norms_of(u, coding.block).mul(kRange), code_buffer(u.numel(), coding), u.clone(),
      at::empty({u.numel()}).fill_(5)};
  quantize_blocks(q.rest, q.ranges, coding, true, q.codes);
  dequantize_blocks({q.codes, coding.offset, 1}, q.ranges, coding, q.value);
  return q;
}

}  // namespace abtrain::ops
