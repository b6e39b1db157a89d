// The codes of a rotated block of elements and their arithmetic (THC: Li et al., "THC: accelerating
// distributed deep learning using tensor homomorphic compression", NSDI 2024), shared by host and
// device so that their results are bit-identical.
//
// A block x of L elements has the coordinates h = H (s x), where H is the Walsh-Hadamard transform
// and s are random signs. The caller gives a range R for the block, which |h| should rarely exceed.
// A coordinate has the code
//   k = offset + stochastic rounding of h limit / R,  within offset +- limit,
// and decodes to (k - offset) R / limit. Applying H and then the signs to the decoded coordinates
// gives the elements times L. Without a rotation, h = x sqrt(L).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bits.h"
#include "kernels/random.h"

namespace abtrain::kernels {

// How codes are stored. Byte: one per byte. Pair: two in an int32, so that workers' codes can be
// added up, to 65,535 (first code) and 32,767 (second code). Nibble: two per byte. The first of two
// codes is in the low bits.
enum class Lanes { Byte, Pair, Nibble };

struct BlockCoding {
  std::int64_t numel = 0;   // element count; zeros follow up to the last block
  std::int64_t blocks = 0;  // a multiple of unit_of(log_size) / block size
  int log_size = 0;         // a block has 2^log_size elements
  bool rotate = true;
  Lanes lanes = Lanes::Byte;
  float limit = 0;                // 7.5 (codes 0 .. 15) or 7 (codes 1 .. 15)
  float offset = 0;               // 7.5 or 8, the code of 0
  const float* ranges = nullptr;  // R of each block
  RandomStream signs, rounding;
  std::int64_t first = 0;  // position of the first element in both streams, a multiple of kUnit
};

// Elements are padded to whole units of kUnit elements, or of one block if that is larger; shards
// consist of whole units. kUnit is the number of signs in four random words, a block of Philox.
constexpr std::int64_t kUnit = 128;

ABT_HOST_DEVICE inline std::int64_t unit_of(int log_size) {
  const std::int64_t size = std::int64_t{1} << log_size;
  return size > kUnit ? size : kUnit;
}

// x, with its sign changed if bit 31 of `sign` is set.
ABT_HOST_DEVICE inline float signed_by(float x, std::uint32_t sign) {
  return float_of(bits_of(x) ^ (sign & 0x80000000u));
}

// A block with a range below this is coded as zeros; its elements stay in the residual.
constexpr float kMinRange = 1e-25f;

// Returns the factor that converts a coordinate (an element if not rotated) to 65,536ths of a code
// step; 0 if the block's range is below kMinRange or not finite.
ABT_HOST_DEVICE inline float code_scale(float range, float limit, int log_size, bool rotate) {
  // Both comparisons are false for a NaN.
  if (!(range >= kMinRange && range <= 3e38f)) {
    return 0;
  }
  const float size = static_cast<float>(std::int64_t{1} << log_size);
  return 65536.0f * limit * (rotate ? 1.0f : ::sqrtf(size)) / range;
}

// Returns the factor that converts sums of codes, less the sum that stands for 0 and multiplied by
// H, to the mean over `members` workers. NaN if the block's range is not finite, so that the
// problem shows.
ABT_HOST_DEVICE inline float code_value(
    float range, float limit, int log_size, bool rotate, float members) {
  if (!(range <= 3e38f)) {
    return float_of(kNan);
  }
  if (range < kMinRange) {
    return 0;
  }
  const float size = static_cast<float>(std::int64_t{1} << log_size);
  return range / (limit * (rotate ? size : ::sqrtf(size)) * members);
}

// The code of coordinate h, with `scale` from code_scale(). `random` holds 16 random bits, which
// decide whether to round up, with a probability that is exact to 2^-16.
ABT_HOST_DEVICE inline std::uint32_t code_of(
    float h, float scale, float limit, float offset, std::uint32_t random) {
  const float most = 65536.0f * limit;
  float z = h * scale;
  z = z > -most ? z : -most;  // replaces a NaN as well
  z = z < most ? z : most;
  // 12582912 = 1.5 * 2^23: the low bits of the sum are then the integer nearest
  // to z + 65536 offset.
  const float sum = z + (12582912.0f + 65536.0f * offset);
  return ((bits_of(sum) + random) >> 16) & 15u;
}

}  // namespace abtrain::kernels
