// Functions on the bits of floats, for host and device.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace abtrain::kernels {

constexpr std::uint32_t kNan = 0x7FC00000;  // the bits of a NaN
constexpr float kLargestFloat = 3.402823466e+38f;

ABT_HOST_DEVICE inline std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
ABT_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// Returns a mask of 32 ones if the condition holds, else 0. Selections by masks need no branches,
// so compilers can vectorize them.
ABT_HOST_DEVICE inline std::uint32_t all_ones(bool condition) {
  return 0u - std::uint32_t{condition};
}

// Returns the larger of a and b, or NaN if either is NaN.
template <class T>
ABT_INLINE T larger(T a, T b) {
  return b > a || b != b ? b : a;
}

}  // namespace abtrain::kernels
