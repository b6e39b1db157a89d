#include "ops/cpu/convert.h"

#include <bit>

#include "ops/cpu/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace abtrain::ops {

namespace {

// Branchless, so that the compiler vectorizes it.
ABT_INLINE void round_to_bf16(const float* in, c10::BFloat16* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    out[i].x = static_cast<std::uint16_t>(nan ? 0x7FC0 : rounded);
  }
}

#if defined(__x86_64__)
// to_float_f16c() and from_float_f16c() convert whole groups of eight and return the number of
// elements done.
__attribute__((target("avx,f16c"))) std::int64_t to_float_f16c(
    const c10::Half* in, float* out, std::int64_t count) {
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + 8 <= count; i += 8) {
    const auto bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
  }
  return i;
}

__attribute__((target("avx,f16c"))) std::int64_t from_float_f16c(
    const float* in, c10::Half* out, std::int64_t count) {
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + 8 <= count; i += 8) {
    const auto bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bits);
  }
  return i;
}

// Every processor with AVX2 has F16C, which clang 16 cannot ask for.
bool has_f16c() {
  return __builtin_cpu_supports("avx2");
}
#else
std::int64_t to_float_f16c(const c10::Half*, float*, std::int64_t) {
  return 0;
}
std::int64_t from_float_f16c(const float*, c10::Half*, std::int64_t) {
  return 0;
}
bool has_f16c() {
  return false;
}
#endif

}  // namespace

void to_float(const c10::Half* in, float* out, std::int64_t count) {
  std::int64_t i = has_f16c() ? to_float_f16c(in, out, count) : 0;
  for (; i < count; ++i) {
    out[i] = static_cast<float>(in[i]);
  }
}

void from_float(const float* in, c10::Half* out, std::int64_t count) {
  std::int64_t i = has_f16c() ? from_float_f16c(in, out, count) : 0;
  for (; i < count; ++i) {
    out[i] = c10::Half(in[i]);
  }
}

void to_float(const c10::BFloat16* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<float>(std::uint32_t{in[i].x} << 16);
  }
}

void from_float(const float* in, c10::BFloat16* out, std::int64_t count) {
  vectorized([&]() ABT_INLINED { round_to_bf16(in, out, count); });
}

}  // namespace abtrain::ops
