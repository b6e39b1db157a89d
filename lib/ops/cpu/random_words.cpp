#include "ops/cpu/random_words.h"

#include "ops/cpu/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace abtrain::ops {

namespace {

#if defined(__x86_64__)
#define ABT_AVX2 __attribute__((target("avx2")))

// Each counter lies in the low half of 64 bits, where the multiplication reads it; the high halves
// are never read. Two sets of four blocks run side by side, so that the multiplications of one set
// hide the latency of the other set's.
ABT_AVX2 void eight_blocks(const RandomStream& stream, std::int64_t first, std::uint32_t* out) {
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53);
  const __m256i m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0[2], c1[2], c2[2], c3[2];
#pragma GCC unroll 2
  for (int s = 0; s < 2; ++s) {
    // Set 0 has blocks 0 .. 3, set 1 has blocks 4 .. 7.
    c0[s] = _mm256_add_epi64(
        _mm256_set1_epi64x(first), _mm256_set_epi64x(4 * s + 3, 4 * s + 2, 4 * s + 1, 4 * s));
    c1[s] = _mm256_srli_epi64(c0[s], 32);
    c2[s] = _mm256_set1_epi64x(stream.a);
    c3[s] = _mm256_set1_epi64x(stream.b);
  }
  std::uint32_t k0 = stream.key[0];
  std::uint32_t k1 = stream.key[1];
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const __m256i key0 = _mm256_set1_epi64x(k0);
    const __m256i key1 = _mm256_set1_epi64x(k1);
#pragma GCC unroll 2
    for (int s = 0; s < 2; ++s) {
      const __m256i p0 = _mm256_mul_epu32(c0[s], m0);
      const __m256i p1 = _mm256_mul_epu32(c2[s], m1);
      c0[s] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1[s], key0));
      c1[s] = p1;
      c2[s] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3[s], key1));
      c3[s] = p0;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
#pragma GCC unroll 2
  for (int s = 0; s < 2; ++s) {
    // Puts words 0 and 1, and words 2 and 3, of each block side by side.
    const __m256i low = _mm256_blend_epi32(c0[s], _mm256_slli_epi64(c1[s], 32), 0b10101010);
    const __m256i high = _mm256_blend_epi32(c2[s], _mm256_slli_epi64(c3[s], 32), 0b10101010);
    const __m256i even = _mm256_unpacklo_epi64(low, high);  // blocks 0, 2
    const __m256i odd = _mm256_unpackhi_epi64(low, high);   // blocks 1, 3
    auto* const to = reinterpret_cast<__m256i*>(out + 16 * s);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}
#undef ABT_AVX2
#else
void eight_blocks(const RandomStream&, std::int64_t, std::uint32_t*) {}
#endif

}  // namespace

void random_words(
    const RandomStream& stream, std::int64_t first, std::int64_t blocks, std::uint32_t* out) {
  std::int64_t i = 0;
  if (simd_in_use == Simd::Avx2) {
    for (; i + 8 <= blocks; i += 8) {
      eight_blocks(stream, first + i, out + 4 * i);
    }
  }
  for (; i < blocks; ++i) {
    kernels::random_block(stream, first + i, out + 4 * i);
  }
}

}  // namespace abtrain::ops
