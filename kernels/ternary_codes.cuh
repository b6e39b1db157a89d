// How kernels pack two-bit codes: eight adjacent ones in two bytes.
#pragma once

#include "kernels/code_blocks.cuh"
#include "kernels/ternary_codes.h"

namespace abtrain::kernels {

using TwoBytes = Packet<std::uint8_t, 2>;

__device__ inline TwoBytes pack_eight(const unsigned (&codes)[kEight]) {
  TwoBytes bytes = {};
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    bytes.values[k / 4] = static_cast<std::uint8_t>(
        bytes.values[k / 4] | codes[k] << shift_of(k % 4));
  }
  return bytes;
}

}  // namespace abtrain::kernels
