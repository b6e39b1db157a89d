#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace abtrain::data {
namespace {

// Pillow's: weights are integers of 22 bits, so that a sum of products with
// bytes fits in 32. They are never negative and add up to 1 but for their
// rounding, so that no sum leaves 0 .. 255.
constexpr int weight_bits = 22;
constexpr std::int32_t half = 1 << (weight_bits - 1);

using Four [[gnu::vector_size(16)]] = std::int32_t;
using FourBytes [[gnu::vector_size(4)]] = std::uint8_t;

// A source row to an output row of `count` pixels.
[[gnu::always_inline]] inline void stretch_row(
    const std::uint8_t* from,
    std::uint8_t* to,
    const std::int64_t* begin,
    const std::int64_t* taps,
    const std::int32_t* weights,
    std::int64_t most,
    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, weights += most, to += 3) {
    const std::uint8_t* pixel = from + 3 * begin[i];
    Four sum = {half, half, half, half};
    for (std::int64_t k = 0; k < taps[i]; ++k, pixel += 3) {
      // The fourth byte is the next pixel's; its lane goes unused.
      FourBytes bytes;
      std::memcpy(&bytes, pixel, sizeof(bytes));
      sum += __builtin_convertvector(bytes, Four) * weights[k];
    }
    const FourBytes out = __builtin_convertvector(sum >> weight_bits, FourBytes);
    std::memcpy(to, &out, sizeof(out));
  }
}

// Rows `stride` bytes apart, weighted, to one row of floats.
[[gnu::always_inline]] inline void blend_rows(
    const std::uint8_t* rows,
    std::int64_t stride,
    const std::int32_t* weights,
    std::int64_t taps,
    std::int32_t* __restrict sums,
    const float* __restrict scale,
    const float* __restrict shift,
    float* __restrict out,
    std::int64_t count) {
  const std::uint8_t* a = rows;
  if (taps == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t sum = half + a[i] * weights[0];
      out[i] = static_cast<float>(sum >> weight_bits) * scale[i] + shift[i];
    }
    return;
  }
  std::int64_t k = 0;
  std::fill_n(sums, taps > 2 ? count : 0, half);
  for (; k + 2 < taps; k += 2, a += 2 * stride) {
    const std::uint8_t* b = a + stride;
    const std::int32_t u = weights[k], v = weights[k + 1];
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i] += a[i] * u + b[i] * v;
    }
  }
  // One or two rows are left; a weight of 0 makes them two.
  const bool two = k + 1 < taps;
  const std::uint8_t* b = two ? a + stride : a;
  const std::int32_t u = weights[k], v = two ? weights[k + 1] : 0;
  if (taps == 2) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t sum = half + a[i] * u + b[i] * v;
      out[i] = static_cast<float>(sum >> weight_bits) * scale[i] + shift[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t sum = sums[i] + a[i] * u + b[i] * v;
    out[i] = static_cast<float>(sum >> weight_bits) * scale[i] + shift[i];
  }
}

struct Kernels {
  decltype(&stretch_row) stretch;
  decltype(&blend_rows) blend;
};

// No fused multiply-add: both forms give the same bits.
#if defined(__x86_64__)
__attribute__((target("avx2"))) void stretch_row_avx2(
    const std::uint8_t* from,
    std::uint8_t* to,
    const std::int64_t* begin,
    const std::int64_t* taps,
    const std::int32_t* weights,
    std::int64_t most,
    std::int64_t count) {
  stretch_row(from, to, begin, taps, weights, most, count);
}
__attribute__((target("avx2"))) void blend_rows_avx2(
    const std::uint8_t* rows,
    std::int64_t stride,
    const std::int32_t* weights,
    std::int64_t taps,
    std::int32_t* __restrict sums,
    const float* __restrict scale,
    const float* __restrict shift,
    float* __restrict out,
    std::int64_t count) {
  blend_rows(rows, stride, weights, taps, sums, scale, shift, out, count);
}
#endif

Kernels kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return {stretch_row_avx2, blend_rows_avx2};
  }
#endif
  return {stretch_row, blend_rows};
}

}  // namespace

// Pillow's precompute_coeffs and normalize_coeffs_8bpc on the part that is cut
// out, on doubles in the same order, for the same bits.
void Resampler::prepare(const Axis& axis, std::int64_t limit, Taps& taps) {
  const double scale = (axis.high - axis.low) / static_cast<double>(axis.size);
  const double support = std::max(scale, 1.0);
  const double narrowing = 1.0 / support;
  const auto origin = static_cast<std::int64_t>(std::floor(axis.low));
  const std::int64_t pixels =
      std::min(limit, static_cast<std::int64_t>(std::ceil(axis.high))) - origin;
  const double low = axis.low - static_cast<double>(origin);
  taps.most = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  const auto count = static_cast<std::size_t>(axis.count);
  taps.begin.resize(count);
  taps.count.resize(count);
  taps.weights.assign(count * static_cast<std::size_t>(taps.most), 0);
  taps.exact.resize(static_cast<std::size_t>(taps.most));
  std::int32_t* weights = taps.weights.data();
  for (std::size_t i = 0; i < count; ++i, weights += taps.most) {
    const double center =
        low +
        (static_cast<double>(axis.first + static_cast<std::int64_t>(i)) + 0.5) *
            scale;
    const std::int64_t begin = std::max<std::int64_t>(
        0, static_cast<std::int64_t>(center - support + 0.5));
    const std::int64_t end = std::min(
        pixels, static_cast<std::int64_t>(center + support + 0.5));
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const double distance =
          std::abs((static_cast<double>(k) - center + 0.5) * narrowing);
      const double weight = distance < 1 ? 1 - distance : 0;
      taps.exact[static_cast<std::size_t>(k - begin)] = weight;
      sum += weight;
    }
    taps.begin[i] = origin + begin;
    taps.count[i] = 1;
    for (std::int64_t k = 0; k < end - begin; ++k) {
      weights[k] = static_cast<std::int32_t>(
          0.5 + taps.exact[static_cast<std::size_t>(k)] / sum *
                    (1 << weight_bits));
      if (weights[k] != 0) {
        taps.count[i] = k + 1;
      }
    }
  }
}

void Resampler::run(
    const Picture& picture,
    const Axis& x,
    const Axis& y,
    bool mirrored,
    std::span<const float> scale,
    std::span<const float> shift,
    float* out) {
  prepare(x, picture.width, x_);
  prepare(y, picture.height, y_);
  if (mirrored) {
    std::reverse(x_.begin.begin(), x_.begin.end());
    std::reverse(x_.count.begin(), x_.count.end());
    // Whole groups of weights change places, each as it is.
    for (std::int64_t i = 0; i < x.count / 2; ++i) {
      std::swap_ranges(
          x_.weights.begin() + i * x_.most,
          x_.weights.begin() + (i + 1) * x_.most,
          x_.weights.begin() + (x.count - 1 - i) * x_.most);
    }
  }
  const std::int64_t values = 3 * x.count;
  const std::int64_t top = y_.begin.front();
  std::int64_t bottom = top;
  for (std::int64_t i = 0; i < y.count; ++i) {
    bottom = std::max(bottom, y_.begin[i] + y_.count[i]);
  }
  const auto needed = static_cast<std::size_t>((bottom - top) * values + 1);
  if (rows_.size() < needed) {
    rows_.resize(needed);
  }
  sums_.resize(static_cast<std::size_t>(values));
  scales_.resize(static_cast<std::size_t>(values));
  shifts_.resize(static_cast<std::size_t>(values));
  for (std::int64_t i = 0; i < values; ++i) {
    scales_[i] = scale[i % 3];
    shifts_[i] = shift[i % 3];
  }
  const Kernels run = kernels();
  for (std::int64_t row = top; row < bottom; ++row) {
    run.stretch(
        picture.pixels + 3 * row * picture.width,
        rows_.data() + (row - top) * values,
        x_.begin.data(),
        x_.count.data(),
        x_.weights.data(),
        x_.most,
        x.count);
  }
  for (std::int64_t i = 0; i < y.count; ++i) {
    run.blend(
        rows_.data() + (y_.begin[i] - top) * values,
        values,
        y_.weights.data() + i * y_.most,
        y_.count[i],
        sums_.data(),
        scales_.data(),
        shifts_.data(),
        out + i * values,
        values);
  }
}

}  // namespace abtrain::data
