// Encodes differences of gradients as 8-bit codes, and decodes them (see ops/difference_codes.h).
// Launchers take device pointers and a cudaStream_t, and return a cudaError_t. The host has its own
// implementation, with loops laid out for the CPU's vectors: the largest magnitude is the same in
// any order of the elements.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bits.h"

namespace abtrain::kernels {

// A record holds the codes of kRecordNumbers elements, then their scale (fp32).
constexpr int kRecordNumbers = 256;
constexpr int kRecordBytes = kRecordNumbers + 4;

// Encodes first - second.
struct EncodeDifference {
  const float* first;        // null: decoded from `kept`
  const std::uint8_t* kept;  // records from an earlier encoding
  const float* second;       // null: 0
  std::int64_t numel;
  std::uint8_t* records;  // output, 4-byte aligned
};
ABT_LAUNCHER int encode_difference(const EncodeDifference& job, void* stream);
void work_on_host(const EncodeDifference& job);

struct DecodeDifferences {
  const std::uint8_t* records;
  std::int64_t count;  // records
  float* out;          // kRecordNumbers elements per record
};
ABT_LAUNCHER int decode_differences(const DecodeDifferences& job, void* stream);
void work_on_host(const DecodeDifferences& job);

ABT_HOST_DEVICE inline float scale_of(const std::uint8_t* record) {
  float scale;
  memcpy(&scale, record + kRecordNumbers, sizeof(scale));
  return scale;
}
// Returns the factor by which a record's elements are multiplied before they are rounded to codes:
// 1 / scale, or 0 if the scale is too small to divide by. `scale` is the record's largest magnitude
// / 127.
ABT_HOST_DEVICE inline float codes_per_unit(float scale) {
  return scale > 1e-37f ? 1.0f / scale : 0.0f;
}
// x * factor, rounded to the nearest integer in -127 .. 127, ties to even.
ABT_HOST_DEVICE inline std::uint8_t to_code(float x, float factor) {
  const float shifted = ::fmaf(x, factor, 12582912.0f);  // 1.5 * 2^23
  return static_cast<std::uint8_t>(bits_of(shifted));
}
// scale * code, rounded: written as an fma so that no compiler fuses it with a later addition.
ABT_HOST_DEVICE inline float from_code(std::uint8_t code, float scale) {
  return ::fmaf(scale, static_cast<float>(static_cast<std::int8_t>(code)), -0.0f);
}

}  // namespace abtrain::kernels
