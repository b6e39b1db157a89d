// The inner loops of level codes on the CPU, one window at a time: in plain C++
// and with AVX2, which give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/cpu/code_blocks.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

constexpr int kCodeBytes = kBlock / 4;  // bytes of codes per window

// The two-bit code of x where all bits of `sent` are set, 0 where none is.
ABT_INLINE std::uint32_t code_of(float x, std::uint32_t sent) {
  return (3 - (std::bit_cast<std::uint32_t>(x) >> 31)) & sent;
}

// Packs four two-bit codes, one per byte, into one byte, and unpacks them.
ABT_INLINE void pack_codes(const std::uint8_t* codes, std::int64_t bytes, std::uint8_t* to) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    std::uint32_t four;
    std::memcpy(&four, codes + 4 * i, sizeof(four));
    to[i] = static_cast<std::uint8_t>(four << 6 | four >> 4 | four >> 14 | four >> 24);
  }
}
ABT_INLINE void unpack_codes(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* codes) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::uint32_t byte = from[i];
    const std::uint32_t four = (byte >> 6 | byte << 4 | byte << 14 | byte << 24) & 0x03030303u;
    std::memcpy(codes + 4 * i, &four, sizeof(four));
  }
}

struct Sent {
  float size = 0;  // sum of the magnitudes
  float count = 0;
};

// Writes the codes (kCodeBytes) of a window's elements (kBlock, padded with
// zeros) that are above the cut.
Sent encode_window(const float* x, float cut, std::uint8_t* codes);

// For two-bit codes 0 .. 3: the level times the code's sign, stored twice.
struct Multiples {
  float of[8];
};

struct AverageRun {
  const std::uint8_t* codes;  // first worker's codes of the window
  std::int64_t stride;        // bytes from one worker's codes to the next
  const Multiples* levels;    // one per worker
  int workers;
  float* estimate;  // of the window
};
// The means of elements first .. end - 1 of a window, summed in the workers'
// order.
void average_window(const AverageRun& run, std::int64_t first, std::int64_t end);

}  // namespace abtrain::ops
