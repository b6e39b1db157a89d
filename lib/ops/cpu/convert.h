// Converts runs of 16-bit floats to and from fp32, rounding to nearest even; runs
// of fp32 are copied. fp16 uses the processor's own instruction where it has one.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

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

}  // namespace abtrain::ops
