// The codes of -a, 0 and +a that level_codes.h and twobit_codes.h share, on
// host and device.
//
// A two-bit code is 3 for +a, 2 for -a, 0 for 0, and in twobit codes 1 for a
// value that is not finite. Four of them are in a byte, the first one in the
// two high bits, as in MXNet. A byte code, which can be added up, is 0, 1 or 2
// for -a, 0 or +a.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

enum class CodeForm { TwoBits, Bytes };

// The most workers whose byte codes a byte can add up.
constexpr int kMaxByteWorkers = 127;

// Bytes of this many two-bit codes.
ABT_HOST_DEVICE constexpr std::int64_t packed_bytes(std::int64_t numel) {
  return (numel + 3) / 4;
}

// The bit at which two-bit code k begins in a little-endian word.
ABT_HOST_DEVICE constexpr int shift_of(int k) {
  return 8 * (k / 4) + 6 - 2 * (k % 4);
}

// -1, 0 or 1 for the two-bit code of -a, 0 or +a.
ABT_HOST_DEVICE constexpr int sign_of(unsigned code) {
  const int high = static_cast<int>(code >> 1);
  const int low = static_cast<int>(code & 1);
  return 2 * (high & low) - high;
}

// The byte code with the same meaning; of a value that is not finite, that of
// 0.
ABT_HOST_DEVICE constexpr std::uint8_t byte_code(unsigned code) {
  return static_cast<std::uint8_t>(1 + sign_of(code));
}

}  // namespace abtrain::kernels
