// Differences of gradients as 8-bit codes (ops/difference_codes.h has the
// meaning). Pointers are device pointers; launches are asynchronous on `stream`
// (a cudaStream_t) and return a cudaError_t as int.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// A record: the codes of so many numbers, then their scale, an fp32 number.
constexpr int kRecordNumbers = 256;
constexpr int kRecordBytes = kRecordNumbers + 4;

struct EncodeDifference {
  const float* first;        // null: what these records stand for
  const std::uint8_t* kept;  // whole ones
  const float* second;       // null: 0
  std::int64_t numel;
  std::uint8_t* records;  // 4-byte aligned
};
int encode_difference(const EncodeDifference& job, void* stream);

struct DecodeDifferences {
  const std::uint8_t* records;
  std::int64_t count;  // records
  float* out;          // kRecordNumbers a record
};
int decode_differences(const DecodeDifferences& job, void* stream);

// What the numbers of a record are multiplied with before they are rounded:
// `scale` is a 127th of the largest one; 0 where nothing can be divided by it.
ABT_HOST_DEVICE inline float codes_a_unit(float scale) {
  return scale > 1e-37f ? 1.0f / scale : 0.0f;
}
// x * factor to the nearest integer, ties to even; within -127 .. 127.
ABT_HOST_DEVICE inline std::uint8_t to_code(float x, float factor) {
  const float shifted = ::fmaf(x, factor, 12582912.0f);  // 1.5 * 2^23
  std::uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  return static_cast<std::uint8_t>(bits);
}
// Rounded by itself, whatever is added to it.
ABT_HOST_DEVICE inline float from_code(std::uint8_t code, float scale) {
  return ::fmaf(
      scale, static_cast<float>(static_cast<std::int8_t>(code)), -0.0f);
}

}  // namespace abtrain::kernels
