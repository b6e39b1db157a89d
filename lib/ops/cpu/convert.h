// Converts arrays of 16-bit floats to and from fp32, rounding to nearest even; arrays of fp32 are
// copied. fp16 is converted by the processor's own instruction if it has one.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::ops {

void to_float(const c10::Half* in, float* out, std::int64_t count);
void to_float(const c10::BFloat16* in, float* out, std::int64_t count);
void from_float(const float* in, c10::Half* out, std::int64_t count);
void from_float(const float* in, c10::BFloat16* out, std::int64_t count);
inline void to_float(const float* in, float* out, std::int64_t count) {
  std::copy_n(in, count, out);
}
inline void from_float(const float* in, float* out, std::int64_t count) {
  std::copy_n(in, count, out);
}

// wire = x / members; x -= members * wire. scratch: `count` elements.
ABT_INLINE void send_halves(
    float* x, std::int64_t count, float members, c10::Half* wire, float* scratch) {
  const float share = 1.0f / members;
  for (std::int64_t i = 0; i < count; ++i) {
    scratch[i] = x[i] * share;
  }
  from_float(scratch, wire, count);
  to_float(wire, scratch, count);
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = __builtin_fmaf(-members, scratch[i], x[i]);
  }
}

}  // namespace abtrain::ops
