#include "ops/cpu/level_codes_simd.h"

#include "kernels/codes/ternary_codes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define ABT_AVX2 __attribute__((target("avx2,fma,popcnt")))
#endif

namespace abtrain::ops {

namespace {

using kernels::shift_of;

// x where the mask is set, else 0.
ABT_INLINE float where(std::uint32_t mask, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & mask);
}

Sent encode_window_plain(const float* x, float cut, std::uint8_t* codes) {
  float lanes[kLanes];
  std::uint8_t each[kBlock];
  std::uint32_t count = 0;
  const auto send = [&](int i) {
    const float magnitude = std::fabs(x[i]);
    const std::uint32_t sent = all_ones(magnitude > cut);
    each[i] = static_cast<std::uint8_t>(code_of(x[i], sent));
    count += sent & 1;
    return where(sent, magnitude);
  };
  for (int i = 0; i < kLanes; ++i) {
    const float low = send(i);
    lanes[i] = low + send(i + kLanes);
  }
  pack_codes(each, kCodeBytes, codes);
  return {add_by_halves(lanes), static_cast<float>(count)};
}

void average_plain(const AverageRun& run, std::int64_t first, std::int64_t end) {
  const auto workers = static_cast<float>(run.workers);
  for (std::int64_t i = first; i < end; ++i) {
    float sum = 0;
    for (int w = 0; w < run.workers; ++w) {
      const int byte = run.codes[w * run.stride + i / 4];
      const int code = byte >> shift_of(static_cast<int>(i % 4)) & 3;
      sum += run.levels[w].of[code];
    }
    run.estimate[i] = sum / workers;
  }
}

#if defined(__x86_64__)
constexpr std::int64_t kWord = 16;  // codes

// One bit per element for 32 elements.
struct Bits {
  std::uint32_t sent = 0;
  std::uint32_t negative = 0;
};

// The magnitudes of those of eight elements that are above the cut (0 for the
// rest); also records their bits.
ABT_AVX2 inline __m256 keep_above(const float* x, __m256 cut, int shift, Bits& bits) {
  const __m256 value = _mm256_loadu_ps(x);
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), value);
  const __m256 mask = _mm256_cmp_ps(magnitude, cut, _CMP_GT_OQ);
  bits.sent |= static_cast<std::uint32_t>(_mm256_movemask_ps(mask)) << shift;
  bits.negative |= static_cast<std::uint32_t>(_mm256_movemask_ps(value)) << shift;
  return _mm256_and_ps(magnitude, mask);
}

// Two bits per element: the high bit is set if it is sent, the low bit if it is
// also positive. A table spreads the bits of four elements, the first one to
// the high bits. (PDEP spreads bits too, but is slow on Zen 2.)
ABT_AVX2 inline void store_codes(const Bits& bits, std::uint8_t* codes) {
  const __m128i table = _mm_setr_epi8(0, 64, 16, 80, 4, 68, 20, 84, 1, 65, 17, 81, 5, 69, 21, 85);
  const __m128i four = _mm_set1_epi8(15);
  const __m128i both = _mm_set_epi32(
      0, 0, static_cast<int>(bits.sent), static_cast<int>(bits.sent & ~bits.negative));
  const __m128i fours =
      _mm_unpacklo_epi8(_mm_and_si128(both, four), _mm_and_si128(_mm_srli_epi16(both, 4), four));
  const __m128i apart = _mm_shuffle_epi8(table, fours);
  const __m128i sent = _mm_slli_epi64(_mm_srli_si128(apart, 8), 1);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(codes), _mm_or_si128(apart, sent));
}

// One half of a window. Its magnitudes are stored in the lanes, or added.
template <bool kAdd>
ABT_AVX2 inline std::int64_t encode_half(
    const float* x, float cut, float* lanes, std::uint8_t* codes) {
  const __m256 cuts = _mm256_set1_ps(cut);
  std::int64_t count = 0;
  for (int i = 0; i < kLanes; i += 32) {
    Bits bits;
#pragma GCC unroll 4
    for (int k = 0; k < 32; k += 8) {
      __m256 sizes = keep_above(x + i + k, cuts, k, bits);
      if constexpr (kAdd) {
        sizes = _mm256_add_ps(_mm256_load_ps(lanes + i + k), sizes);
      }
      _mm256_store_ps(lanes + i + k, sizes);
    }
    store_codes(bits, codes + i / 4);
    count += __builtin_popcount(bits.sent);
  }
  return count;
}

ABT_AVX2 Sent encode_window_avx2(const float* x, float cut, std::uint8_t* codes) {
  alignas(32) float lanes[kLanes];
  const std::int64_t count = encode_half<false>(x, cut, lanes, codes) +
                             encode_half<true>(x + kLanes, cut, lanes, codes + kLanes / 4);
  return {add_by_halves(lanes), static_cast<float>(count)};
}

ABT_AVX2 void average_avx2(const AverageRun& run, std::int64_t first, std::int64_t end) {
  const std::int64_t begin = std::min(end, (first + kWord - 1) / kWord * kWord);
  const std::int64_t stop = std::max(begin, end / kWord * kWord);
  average_plain(run, first, begin);
  // shift_of(k) for codes 0 .. 7 and 8 .. 15 of a word.
  const __m256i low = _mm256_setr_epi32(6, 4, 2, 0, 14, 12, 10, 8);
  const __m256i high = _mm256_setr_epi32(22, 20, 18, 16, 30, 28, 26, 24);
  const bool exact = std::has_single_bit(static_cast<unsigned>(run.workers));
  const __m256 workers = _mm256_set1_ps(static_cast<float>(run.workers));
  const __m256 factor = _mm256_set1_ps(1 / static_cast<float>(run.workers));
  for (std::int64_t i = begin; i < stop; i += kWord) {
    __m256 a = _mm256_setzero_ps();
    __m256 b = a;
    const std::uint8_t* from = run.codes + i / 4;
    for (int w = 0; w < run.workers; ++w, from += run.stride) {
      std::int32_t word;
      std::memcpy(&word, from, sizeof(word));
      const __m256i all = _mm256_set1_epi32(word);
      // The permutation reads two bits of each lane.
      const __m256 level = _mm256_loadu_ps(run.levels[w].of);
      a = _mm256_add_ps(a, _mm256_permutevar_ps(level, _mm256_srlv_epi32(all, low)));
      b = _mm256_add_ps(b, _mm256_permutevar_ps(level, _mm256_srlv_epi32(all, high)));
    }
    // Multiplying by a power of two gives the same bits as the division.
    a = exact ? _mm256_mul_ps(a, factor) : _mm256_div_ps(a, workers);
    b = exact ? _mm256_mul_ps(b, factor) : _mm256_div_ps(b, workers);
    _mm256_storeu_ps(run.estimate + i, a);
    _mm256_storeu_ps(run.estimate + i + 8, b);
  }
  average_plain(run, stop, end);
}
#undef ABT_AVX2
#else
constexpr auto* encode_window_avx2 = encode_window_plain;
constexpr auto* average_avx2 = average_plain;
#endif

}  // namespace

Sent encode_window(const float* x, float cut, std::uint8_t* codes) {
  return (simd_in_use == Simd::Avx2 ? encode_window_avx2 : encode_window_plain)(x, cut, codes);
}
void average_window(const AverageRun& run, std::int64_t first, std::int64_t end) {
  (simd_in_use == Simd::Avx2 ? average_avx2 : average_plain)(run, first, end);
}

}  // namespace abtrain::ops
