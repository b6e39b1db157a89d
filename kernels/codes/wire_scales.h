// The arithmetic of wire_codes.h, shared by host and device so that results are bit-identical.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bits.h"

namespace abtrain::kernels {

constexpr std::uint16_t kNanScale = 0x7FC0;

// A scale below this is sent as 0, and the chunk's elements stay in the residual. The product of
// any other scale (8 significant bits) and a multiple (at most 7 bits) is a normal float of at most
// 15 bits, hence exact.
constexpr float kSmallestScale = 0x1p-126f;
constexpr float kLargestScale = 0x1.FEp127f;

// Replaces every NaN by the same one, because processors return NaNs with different bits.
ABT_HOST_DEVICE inline float with_one_nan(float x) {
  return x == x ? x : float_of(kNan);
}
// Returns the bits of |x|: as integers, they have the order of the magnitudes, with NaN above every
// number.
ABT_HOST_DEVICE inline std::uint32_t magnitude_bits(float x) {
  return bits_of(x) & 0x7FFFFFFFu;
}

// Returns the bits of a scale in bf16, rounded up or to nearest even: 0 if the scale is below
// kSmallestScale, NaN if it is NaN or above kLargestScale.
ABT_HOST_DEVICE inline std::uint16_t round_scale(float scale, bool up) {
  // False for a NaN.
  if (!(scale <= kLargestScale)) {
    return kNanScale;
  }
  if (scale < kSmallestScale) {
    return 0;
  }
  const std::uint32_t bits = bits_of(scale);
  const std::uint32_t half = up ? 0xFFFFu : 0x7FFFu + (bits >> 16 & 1);
  return static_cast<std::uint16_t>((bits + half) >> 16);
}
ABT_HOST_DEVICE inline float scale_value(std::uint16_t bits) {
  return float_of(std::uint32_t{bits} << 16);
}

// Int8 and Int4: the scale of a chunk, rounded up so that no code exceeds 127 or 7. `largest` holds
// the bits of the chunk's largest magnitude.
template <int kBits>
ABT_HOST_DEVICE inline std::uint16_t integer_scale(std::uint32_t largest) {
  constexpr float kMax = (1 << (kBits - 1)) - 1;
  return round_scale(float_of(largest) / kMax, /*up=*/true);
}
// x / scale, rounded to nearest even, in the low bits. scale > 0.
ABT_HOST_DEVICE inline std::uint32_t integer_code(float x, float scale) {
  return bits_of(x / scale + 12582912.0f);  // 1.5 * 2^23
}

// Int2: the magnitude above which an element has the level 3, in a chunk of `count` elements with
// the sum of squares `squares`. Max, "Quantizing for minimum distortion", 1960: the best four
// levels with equal steps for a Gaussian.
ABT_HOST_DEVICE inline float level_cut(float squares, int count) {
  return 0.9957f * ::sqrtf(squares / static_cast<float>(count));
}
ABT_HOST_DEVICE inline float level_of(bool above) {
  return above ? 3.0f : 1.0f;
}
// Int2: the scale s = <x, c> / <c, c>, which minimizes |x - s c| for the multiples c. `products` is
// <x, c>, the sum of magnitudes times levels; `threes` is how many levels are 3.
ABT_HOST_DEVICE inline std::uint16_t level_scale(float products, int count, int threes) {
  return round_scale(products / static_cast<float>(count + 8 * threes), /*up=*/false);
}

// Int2 and Sparse: signed_code() returns the code of x, with bit 0 set if x has the larger level
// (`above`) and bit 1 if x is negative. with_sign() gives a level the code's sign.
ABT_HOST_DEVICE inline std::uint32_t signed_code(float x, bool above) {
  return (above ? 1u : 0u) | (bits_of(x) >> 30 & 2u);
}
ABT_HOST_DEVICE inline float with_sign(float level, std::uint32_t code) {
  return (code & 2u) != 0 ? -level : level;
}

// Returns the multiple of the scale that the code, in the low kBits of `code`, stands for.
template <int kBits>
ABT_HOST_DEVICE inline float multiple_of(std::uint32_t code) {
  if constexpr (kBits == 2) {
    return with_sign(level_of((code & 1u) != 0), code);
  } else {
    constexpr int kUnused = 32 - kBits;
    return static_cast<float>(static_cast<std::int32_t>(code << kUnused) >> kUnused);
  }
}

// Sparse: returns a level's bits in bf16. A level is the mean of the magnitudes sent as this level.
ABT_HOST_DEVICE inline std::uint16_t mean_scale(float sum, int count) {
  return count == 0 ? std::uint16_t{0} : round_scale(sum / static_cast<float>(count), /*up=*/false);
}
// The bits that represent element j of a group.
ABT_HOST_DEVICE inline std::uint64_t group_bits(std::uint32_t index, std::uint32_t code, int j) {
  return std::uint64_t{index} << (12 * j) | std::uint64_t{code} << (48 + 2 * j);
}
ABT_HOST_DEVICE inline std::uint32_t index_in(std::uint64_t group, int j) {
  return static_cast<std::uint32_t>(group >> (12 * j)) & 0xFFFu;
}
ABT_HOST_DEVICE inline std::uint32_t code_in(std::uint64_t group, int j) {
  return static_cast<std::uint32_t>(group >> (48 + 2 * j)) & 3u;
}

// The residual: x minus scale * multiple (an exact product), which was sent.
ABT_HOST_DEVICE inline float rest_of(float x, float scale, float multiple) {
  return with_one_nan(::fmaf(-scale, multiple, x));
}
ABT_HOST_DEVICE inline float decoded(float out, float factor, float value, bool add) {
  return with_one_nan(add ? ::fmaf(factor, value, out) : factor * value);
}

}  // namespace abtrain::kernels
