// Inputs, codes and codings for tests of the quantizer of ops/quantize.h.
#pragma once

#include <bit>

#include "code_buffers.h"
#include "ops/quantize.h"

namespace abtrain::ops {

// (-1)^(number of ones that i and j have in common).
inline int hadamard_entry(std::int64_t i, std::int64_t j) {
  return std::popcount(static_cast<std::uint64_t>(i & j)) % 2 == 0 ? 1 : -1;
}

inline at::Tensor hadamard_matrix(std::int64_t size) {
  at::Tensor h = at::empty({size, size}, at::kDouble);
  auto* out = h.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < size * size; ++i) {
    out[i] = hadamard_entry(i / size, i % size);
  }
  return h;
}

inline std::int64_t padded(std::int64_t numel, std::int64_t block) {
  const std::int64_t unit = unit_of(block);
  return (numel + unit - 1) / unit * unit;
}

inline at::Tensor norms_of(
    const Forms& forms, const at::Tensor& u, std::int64_t block, std::int64_t offset = 0) {
  return forms.same([&](const Form& form) {
    const at::Tensor norms = form.blank({padded(u.numel(), block) / block});
    block_norms(form.of(u, offset), block, norms);
    return norms;
  });
}

inline at::Tensor blank_codes(const Form& form, std::int64_t numel, const Coding& c) {
  const std::int64_t all = padded(numel, c.block);
  return form.blank(
      {c.lanes == Lanes::Byte ? all : all / 2}, c.lanes == Lanes::Pair ? at::kInt : at::kByte);
}

inline Coding coding_of(std::int64_t block, bool rotate, Lanes lanes) {
  Coding coding{.block = block, .rotate = rotate, .lanes = lanes};
  coding.seed = 0x123456789abcdef;
  coding.step = 41;
  coding.signs = 3;
  coding.rounding = 7 << 16 | 3;
  coding.first = 384;
  if (lanes == Lanes::Nibble) {
    coding.limit = 7;
    coding.offset = 8;
  }
  return coding;
}

// The codes of u, what they leave of it, and what they stand for.
struct Quantized {
  at::Tensor ranges, codes, rest, value;
};
inline Quantized quantized(
    const Forms& forms, const at::Tensor& u, const at::Tensor& ranges, const Coding& coding,
    bool residual = true, std::int64_t offset = 0) {
  const auto [codes, rest, value] = forms.same([&](const Form& form) {
    const std::array out{
        blank_codes(form, u.numel(), coding), form.of(u, offset),
        form.blank({u.numel()}, at::kFloat, offset)};
    const at::Tensor own = form.of(ranges);
    quantize_blocks(out[1], own, coding, residual, out[0]);
    dequantize_blocks({out[0], coding.offset, 1}, own, coding, out[2]);
    return out;
  });
  return {ranges, codes, rest, value};
}
// With the ranges of its blocks' norms.
inline Quantized quantized(const Forms& forms, const at::Tensor& u, const Coding& coding) {
  const at::Tensor norms = norms_of(Forms({}), u, coding.block);
  return quantized(forms, u, norms.mul(3.2971933456919635F), coding);
}

}  // namespace abtrain::ops
