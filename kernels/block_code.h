// The codes of a rotated block and their arithmetic (THC: Li et al., "THC:
// accelerating distributed deep learning using tensor homomorphic compression",
// NSDI 2024), shared by host and device: the same bits on both.
//
// A block x of L numbers has the coordinates h = H (s x) with random signs s.
// With its range R, which no |h| of a Gaussian block often passes, a coordinate
// has the code
//   k = offset + stochastic rounding of h limit / R,  within offset +- limit,
// and a code stands for (k - offset) R / limit. H turns these back into numbers
// L times as large. Without a rotation h = x sqrt(L).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// How codes lie: a byte each; two in 32 bits (sums up to 65,535 and 32,767);
// two in a byte. The first is always in the low bits.
enum class Lanes { Byte, Pair, Nibble };

struct BlockCoding {
  std::int64_t numel = 0;   // numbers that are there; then zeros
  std::int64_t blocks = 0;  // of them a multiple of unit / block
  int log_size = 0;         // of a block
  bool rotate = true;
  Lanes lanes = Lanes::Byte;
  float limit = 0;                // 7.5 or 7
  float offset = 0;               // 7.5 or 8
  const float* ranges = nullptr;  // R of each block
  // Streams of random numbers, and the place in them of the first number.
  std::uint32_t sign_key[2] = {};
  std::uint32_t rounding_key[2] = {};
  std::uint32_t step = 0;
  std::uint32_t sign_stream = 0;
  std::uint32_t rounding_stream = 0;
  std::int64_t first = 0;  // a multiple of kUnit
};

// Blocks are padded to, and shards cut at, so many numbers, or a whole block: a
// block of random numbers has the signs of so many.
constexpr std::int64_t kUnit = 128;

ABT_HOST_DEVICE inline std::int64_t unit_of(int log_size) {
  const std::int64_t size = std::int64_t{1} << log_size;
  return size > kUnit ? size : kUnit;
}

ABT_HOST_DEVICE inline std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

ABT_HOST_DEVICE inline float from_bits(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// x with its sign changed where bit 31 of `sign` is set.
ABT_HOST_DEVICE inline float signed_by(float x, std::uint32_t sign) {
  return from_bits(bits_of(x) ^ (sign & 0x80000000u));
}

// Below this a block is as good as zero: its residual keeps it.
constexpr float kSmallestRange = 1e-25f;

// What turns a coordinate into 65,536ths of a code; 0 for a block of zeros and
// one with a number that is not finite.
ABT_HOST_DEVICE inline float
code_scale(float range, float limit, int log_size, bool rotate) {
  // Both comparisons are false for a NaN.
  if (!(range >= kSmallestRange && range <= 3e38f)) {
    return 0;
  }
  const float size = static_cast<float>(std::int64_t{1} << log_size);
  return 65536.0f * limit * (rotate ? 1.0f : ::sqrtf(size)) / range;
}

// What a code less its zero is worth once H has been applied, in the mean of
// `members`; NaN for a block with a number that is not finite, so that it
// shows.
ABT_HOST_DEVICE inline float
code_value(float range, float limit, int log_size, bool rotate, float members) {
  if (!(range <= 3e38f)) {
    return from_bits(0x7FC00000u);
  }
  if (range < kSmallestRange) {
    return 0;
  }
  const float size = static_cast<float>(std::int64_t{1} << log_size);
  return range / (limit * (rotate ? size : ::sqrtf(size)) * members);
}

// The code of coordinate h; `random` has 16 bits, of which the rounding up has
// its probability: to 2^-16 of a code.
ABT_HOST_DEVICE inline std::uint32_t
code_of(float h, float scale, float limit, float offset, std::uint32_t random) {
  const float most = 65536.0f * limit;
  float z = h * scale;
  z = z > -most ? z : -most;  // of a NaN too: no cast of it
  z = z < most ? z : most;
  // 1.5 * 2^23: in the sum's low bits stands the integer nearest to z + offset.
  const float sum = z + (12582912.0f + 65536.0f * offset);
  return ((bits_of(sum) + random) >> 16) & 15u;
}

}  // namespace abtrain::kernels
