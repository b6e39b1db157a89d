#include "ops/cpu/hadamard.h"

#include <algorithm>
#include <cstdint>

#include "ops/cpu/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace abtrain::ops {

namespace {

// 2^kCacheLog floats fit the first-level cache.
constexpr int kCacheLog = 12;

// Computes the stages with strides 2^from .. 2^(to - 1), one after another.
void stages_plain(float* x, std::int64_t size, int from, int to) {
  for (std::int64_t h = std::int64_t{1} << from; h < std::int64_t{1} << to; h *= 2) {
    for (std::int64_t i = 0; i < size; i += 2 * h) {
      for (std::int64_t j = i; j < i + h; ++j) {
        const float a = x[j];
        const float b = x[j + h];
        x[j] = a + b;
        x[j + h] = a - b;
      }
    }
  }
}

#if defined(__x86_64__)
#define ABT_AVX2 __attribute__((target("avx2")))

// Computes the three stages within a vector of eight. For each pair (a, b), the vector with (a, -b)
// is added to the vector with (b, a), so that one addition gives both a + b and a - b.
ABT_AVX2 inline __m256 stages_within(__m256 x) {
  const __m256 one =
      _mm256_castsi256_ps(_mm256_set1_epi64x(static_cast<long long>(0x8000000000000000ull)));
  const __m256 two =
      _mm256_castsi256_ps(_mm256_set_epi32(INT32_MIN, INT32_MIN, 0, 0, INT32_MIN, INT32_MIN, 0, 0));
  const __m256 four =
      _mm256_castsi256_ps(_mm256_set_epi32(INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 0, 0, 0, 0));
  x = _mm256_add_ps(_mm256_permute_ps(x, 0b10'11'00'01), _mm256_xor_ps(x, one));
  x = _mm256_add_ps(_mm256_permute_ps(x, 0b01'00'11'10), _mm256_xor_ps(x, two));
  return _mm256_add_ps(_mm256_permute2f128_ps(x, x, 1), _mm256_xor_ps(x, four));
}

// Computes kStages stages across 2^kStages vectors.
template <int kStages>
ABT_AVX2 inline void stages_between(__m256* x) {
#pragma GCC unroll 3
  for (int stride = 1; stride < 1 << kStages; stride *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < 1 << kStages; ++i) {
      if ((i & stride) == 0) {
        const __m256 a = x[i];
        const __m256 b = x[i + stride];
        x[i] = _mm256_add_ps(a, b);
        x[i + stride] = _mm256_sub_ps(a, b);
      }
    }
  }
}

// Computes the first six stages.
ABT_AVX2 void first_stages_avx2(float* x, std::int64_t size) {
  for (float* const end = x + size; x < end; x += 64) {
    __m256 v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      v[i] = stages_within(_mm256_loadu_ps(x + 8 * i));
    }
    stages_between<3>(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      _mm256_storeu_ps(x + 8 * i, v[i]);
    }
  }
}

// Computes kStages stages, with strides from h on, in one pass.
template <int kStages>
ABT_AVX2 void pass_avx2(float* x, std::int64_t size, std::int64_t h) {
  constexpr int kCount = 1 << kStages;
  for (float* const end = x + size; x < end; x += kCount * h) {
    for (std::int64_t j = 0; j < h; j += 8) {
      __m256 v[kCount];
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        v[i] = _mm256_loadu_ps(x + i * h + j);
      }
      stages_between<kStages>(v);
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        _mm256_storeu_ps(x + i * h + j, v[i]);
      }
    }
  }
}

void stages_avx2(float* x, std::int64_t size, int from, int to) {
  if (from == 0) {
    if (to < 6) {
      stages_plain(x, size, 0, to);
      return;
    }
    first_stages_avx2(x, size);
    from = 6;
  }
  while (from < to) {
    const int left = to - from;
    const std::int64_t h = std::int64_t{1} << from;
    // Four remaining stages take two passes of two, no more than three and one would.
    if (left == 3 || left > 4) {
      pass_avx2<3>(x, size, h);
      from += 3;
    } else if (left >= 2) {
      pass_avx2<2>(x, size, h);
      from += 2;
    } else {
      pass_avx2<1>(x, size, h);
      from += 1;
    }
  }
}
#undef ABT_AVX2
#else
constexpr auto* stages_avx2 = stages_plain;
#endif

void stages(float* x, int log_size, int from) {
  const std::int64_t size = std::int64_t{1} << log_size;
  if (simd_in_use == Simd::Avx2) {
    stages_avx2(x, size, from, log_size);
  } else {
    stages_plain(x, size, from, log_size);
  }
}

}  // namespace

void hadamard_block(float* x, int log_size) {
  if (log_size <= kCacheLog) {
    stages(x, log_size, 0);
    return;
  }
  // First transforms parts of the block, cut again until they fit the cache; then one more pass
  // does the last stages.
  const int part_log = std::max(log_size - 3, kCacheLog);
  for (std::int64_t part = 0; part < std::int64_t{1} << (log_size - part_log); ++part) {
    hadamard_block(x + (part << part_log), part_log);
  }
  stages(x, log_size, part_log);
}

}  // namespace abtrain::ops
