#include "data/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/error.h"

namespace abtrain::data {
namespace {

// As in Pillow, weights are 22-bit integers, so that a sum of their products with bytes fits in 32
// bits. They are never negative and add up to 1 except for rounding, so every sum stays within 0 ..
// 255.
constexpr int kWeightBits = 22;
constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

#if defined(__SSE2__)
// A weight is split into high * 2^11 + low, both within 16 bits, because one instruction multiplies
// pairs of 16-bit numbers and adds the two products.
constexpr int kLowBits = 11;

[[gnu::always_inline]] inline __m128i load_pair(const std::uint8_t* pixel) {
  std::int32_t first = 0, second = 0;
  std::memcpy(&first, pixel, sizeof(first));
  std::memcpy(&second, pixel + 3, sizeof(second));
  // Interleaves both pixels as c0 d0 c1 d1 ..., then widens the values.
  return _mm_unpacklo_epi8(
      _mm_unpacklo_epi8(_mm_cvtsi32_si128(first), _mm_cvtsi32_si128(second)), _mm_setzero_si128());
}

[[gnu::always_inline]] inline void store_pixel(__m128i high, __m128i low, std::uint8_t* to) {
  const __m128i sum =
      _mm_srai_epi32(_mm_add_epi32(_mm_slli_epi32(high, kLowBits), low), kWeightBits);
  const __m128i words = _mm_packs_epi32(sum, sum);
  const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(to, &bytes, sizeof(bytes));
}

// Maps two source rows to two output rows of `count` pixels. Output pixel i is made from pairs[i]
// pairs of source pixels, starting at begin[i]; each output pixel has `most` weights. A fourth byte
// is read and written after each pixel.
[[gnu::always_inline]] inline void stretch_rows(
    const std::uint8_t* row_a, const std::uint8_t* row_b, std::uint8_t* to_a, std::uint8_t* to_b,
    const std::int64_t* begin, const std::int64_t* pairs, const std::int32_t* weights,
    std::int64_t most, std::int64_t count) {
  const __m128i mask = _mm_set1_epi32((1 << kLowBits) - 1);
  const __m128i start = _mm_set1_epi32(kHalf);
  for (std::int64_t i = 0; i < count; ++i, weights += most) {
    const std::uint8_t* a = row_a + 3 * begin[i];
    const std::uint8_t* b = row_b + 3 * begin[i];
    __m128i high_a = _mm_setzero_si128(), high_b = high_a;
    __m128i low_a = start, low_b = start;
    for (std::int64_t k = 0; k < pairs[i]; ++k, a += 6, b += 6) {
      // Packs the high parts of w0 and w1 into each 32 bits, and likewise their low parts.
      const __m128i w = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + 2 * k));
      const auto pair = [](__m128i parts) {
        const __m128i packed = _mm_packs_epi32(parts, parts);
        return _mm_shuffle_epi32(packed, 0);
      };
      const __m128i high = pair(_mm_srai_epi32(w, kLowBits));
      const __m128i low = pair(_mm_and_si128(w, mask));
      const __m128i pixels_a = load_pair(a), pixels_b = load_pair(b);
      high_a = _mm_add_epi32(high_a, _mm_madd_epi16(pixels_a, high));
      low_a = _mm_add_epi32(low_a, _mm_madd_epi16(pixels_a, low));
      high_b = _mm_add_epi32(high_b, _mm_madd_epi16(pixels_b, high));
      low_b = _mm_add_epi32(low_b, _mm_madd_epi16(pixels_b, low));
    }
    store_pixel(high_a, low_a, to_a + 3 * i);
    store_pixel(high_b, low_b, to_b + 3 * i);
  }
}
#else
[[gnu::always_inline]] inline void stretch_rows(
    const std::uint8_t* row_a, const std::uint8_t* row_b, std::uint8_t* to_a, std::uint8_t* to_b,
    const std::int64_t* begin, const std::int64_t* pairs, const std::int32_t* weights,
    std::int64_t most, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, weights += most) {
    for (const auto& [from, to] : {std::pair(row_a, to_a), std::pair(row_b, to_b)}) {
      const std::uint8_t* pixel = from + 3 * begin[i];
      for (std::int64_t c = 0; c < 3; ++c) {
        std::int32_t sum = kHalf;
        for (std::int64_t k = 0; k < 2 * pairs[i]; ++k) {
          sum += pixel[3 * k + c] * weights[k];
        }
        to[3 * i + c] = static_cast<std::uint8_t>(sum >> kWeightBits);
      }
    }
  }
}
#endif

// Blends weighted rows, `stride` bytes apart, into one row of floats.
[[gnu::always_inline]] inline void blend_rows(
    const std::uint8_t* rows, std::int64_t stride, const std::int32_t* weights, std::int64_t taps,
    std::int32_t* __restrict sums, const float* __restrict scale, const float* __restrict shift,
    float* __restrict out, std::int64_t count) {
  const std::uint8_t* a = rows;
  std::int64_t k = 0;
  std::fill_n(sums, taps > 2 ? count : 0, kHalf);
  for (; k + 2 < taps; k += 2, a += 2 * stride) {
    const std::uint8_t* b = a + stride;
    const std::int32_t u = weights[k], v = weights[k + 1];
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i] += a[i] * u + b[i] * v;
    }
  }
  // One or two rows are left; for one, the second weight is 0.
  const bool two = k + 1 < taps;
  const std::uint8_t* b = two ? a + stride : a;
  const std::int32_t u = weights[k], v = two ? weights[k + 1] : 0;
  if (taps <= 2) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t sum = kHalf + a[i] * u + b[i] * v;
      out[i] = static_cast<float>(sum >> kWeightBits) * scale[i] + shift[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t sum = sums[i] + a[i] * u + b[i] * v;
    out[i] = static_cast<float>(sum >> kWeightBits) * scale[i] + shift[i];
  }
}

// Uses no fused multiply-add, so that the result is bit-identical to that of blend_rows().
#if defined(__x86_64__)
__attribute__((target("avx2"))) void blend_rows_avx2(
    const std::uint8_t* rows, std::int64_t stride, const std::int32_t* weights, std::int64_t taps,
    std::int32_t* __restrict sums, const float* __restrict scale, const float* __restrict shift,
    float* __restrict out, std::int64_t count) {
  blend_rows(rows, stride, weights, taps, sums, scale, shift, out, count);
}
#endif

decltype(&blend_rows) best_blend() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return blend_rows_avx2;
  }
#endif
  return blend_rows;
}

}  // namespace

// Does what Pillow's precompute_coeffs and normalize_coeffs_8bpc do, for the part that is cut out,
// with the same order of operations, so that the weights are bit-identical to Pillow's.
void Resampler::prepare(const Axis& axis, std::int64_t limit, Taps& taps) {
  const double scale = (axis.high - axis.low) / static_cast<double>(axis.size);
  const double support = std::max(scale, 1.0);
  const double narrowing = 1.0 / support;
  const auto origin = static_cast<std::int64_t>(std::floor(axis.low));
  const std::int64_t pixels =
      std::min(limit, static_cast<std::int64_t>(std::ceil(axis.high))) - origin;
  const double low = axis.low - static_cast<double>(origin);
  taps.most = static_cast<std::int64_t>(std::ceil(support)) * 2 + 2;
  const auto count = static_cast<std::size_t>(axis.count);
  taps.begin.resize(count);
  taps.count.resize(count);
  taps.pairs.resize(count);
  taps.weights.assign(count * static_cast<std::size_t>(taps.most), 0);
  taps.exact.resize(static_cast<std::size_t>(taps.most));
  std::int32_t* weights = taps.weights.data();
  for (std::size_t i = 0; i < count; ++i, weights += taps.most) {
    const double center =
        low + (static_cast<double>(axis.first + static_cast<std::int64_t>(i)) + 0.5) * scale;
    const std::int64_t begin =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const std::int64_t end = std::min(pixels, static_cast<std::int64_t>(center + support + 0.5));
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const double distance = std::abs((static_cast<double>(k) - center + 0.5) * narrowing);
      const double weight = distance < 1 ? 1 - distance : 0;
      taps.exact[static_cast<std::size_t>(k - begin)] = weight;
      sum += weight;
    }
    taps.begin[i] = origin + begin;
    taps.count[i] = 1;
    for (std::int64_t k = 0; k < end - begin; ++k) {
      weights[k] = static_cast<std::int32_t>(
          0.5 + taps.exact[static_cast<std::size_t>(k)] / sum * (1 << kWeightBits));
      if (weights[k] != 0) {
        taps.count[i] = k + 1;
      }
    }
    taps.pairs[i] = (taps.count[i] + 1) / 2;
  }
}

void Resampler::run(
    const Picture& picture, const Axis& x, const Axis& y, bool mirrored,
    std::span<const float> scale, std::span<const float> shift, float* out) {
  prepare(x, picture.width, x_);
  prepare(y, picture.height, y_);
  if (mirrored) {
    std::reverse(x_.begin.begin(), x_.begin.end());
    std::reverse(x_.pairs.begin(), x_.pairs.end());
    // Swaps whole groups of weights; each group stays as it is.
    for (std::int64_t i = 0; i < x.count / 2; ++i) {
      std::swap_ranges(
          x_.weights.begin() + i * x_.most, x_.weights.begin() + (i + 1) * x_.most,
          x_.weights.begin() + (x.count - 1 - i) * x_.most);
    }
  }
  const std::int64_t values = 3 * x.count;
  const std::int64_t top = y_.begin.front();
  std::int64_t bottom = top;
  for (std::int64_t i = 0; i < y.count; ++i) {
    bottom = std::max(bottom, y_.begin[i] + y_.count[i]);
  }
  // Leaves space for a whole number of row pairs.
  const auto needed = static_cast<std::size_t>((bottom - top + 1) * (values + 1));
  rows_.resize(std::max(rows_.size(), needed));
  sums_.resize(static_cast<std::size_t>(values));
  scales_.resize(static_cast<std::size_t>(values));
  shifts_.resize(static_cast<std::size_t>(values));
  for (std::int64_t i = 0; i < values; ++i) {
    scales_[i] = scale[i % 3];
    shifts_[i] = shift[i % 3];
  }
  const auto blend = best_blend();
  // The fourth byte written for each pixel is superfluous: the next pixel overwrites it, and each
  // row has space for it after its last pixel.
  const std::int64_t stride = values + 1;
  for (std::int64_t row = top; row < bottom; row += 2) {
    const std::int64_t other = std::min(row + 1, bottom - 1);
    stretch_rows(
        picture.pixels + 3 * row * picture.width, picture.pixels + 3 * other * picture.width,
        rows_.data() + (row - top) * stride, rows_.data() + (row + 1 - top) * stride,
        x_.begin.data(), x_.pairs.data(), x_.weights.data(), x_.most, x.count);
  }
  for (std::int64_t i = 0; i < y.count; ++i) {
    blend(
        rows_.data() + (y_.begin[i] - top) * stride, stride, y_.weights.data() + i * y_.most,
        y_.count[i], sums_.data(), scales_.data(), shifts_.data(), out + i * values, values);
  }
}

}  // namespace abtrain::data
