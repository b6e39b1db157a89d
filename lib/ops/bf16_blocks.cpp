#include "ops/bf16_blocks.h"

#include <ATen/native/CPUBlas.h>

#include "base/error.h"

#if defined(__x86_64__) && defined(CPUBLAS_BRGEMM_BF16BF16F32)

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace abtrain::ops {
namespace {

using at::BFloat16;

// The side of a block of c, and the number of products that are added to each of its sums at a
// time.
constexpr std::int64_t kSide = 64;
constexpr std::int64_t kDepth = 512;
// LibTorch compiles and keeps a kernel for each shape and stride. To limit their number, sizes
// (such as ranks of factors) are padded to a multiple of this.
constexpr std::int64_t kStep = 16;
// The largest number of rows in a strip of sums, so that a strip fits the second-level cache.
constexpr std::int64_t kStripRows = 1024;
// Products with fewer multiplications than this run on one thread.
constexpr std::int64_t kShared = 1 << 19;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t filled(std::int64_t size) {
  return quotient_up(size, kStep) * kStep;
}

// Transposes a square with 16 / sizeof(Unit) units per side; a unit has two or four bytes.
template <class Unit>
void transpose_square(
    const BFloat16* from, std::int64_t from_row, BFloat16* to, std::int64_t to_row) {
  constexpr int kUnits = 16 / sizeof(Unit);
  __m128i x[kUnits], y[kUnits];
  for (int i = 0; i < kUnits; ++i) {
    x[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_row));
  }
  // Each round interleaves the first half of the rows with the second half.
  for (int round = 1; round < kUnits; round *= 2) {
    for (int i = 0; i < kUnits / 2; ++i) {
      const __m128i other = x[i + kUnits / 2];
      y[2 * i] =
          sizeof(Unit) == 2 ? _mm_unpacklo_epi16(x[i], other) : _mm_unpacklo_epi32(x[i], other);
      y[2 * i + 1] =
          sizeof(Unit) == 2 ? _mm_unpackhi_epi16(x[i], other) : _mm_unpackhi_epi32(x[i], other);
    }
    std::copy_n(y, kUnits, x);
  }
  for (int i = 0; i < kUnits; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_row), x[i]);
  }
}

// Copies unit j of row i of `from` to unit i of row j of `to`.
template <class Unit>
void transpose(
    const BFloat16* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
    BFloat16* to, std::int64_t to_row) {
  constexpr std::int64_t kUnits = 16 / sizeof(Unit);
  constexpr std::int64_t kWidth = sizeof(Unit) / sizeof(BFloat16);
  const std::int64_t whole = columns / kUnits * kUnits;
  for (std::int64_t i = 0; i < rows; i += kUnits) {
    std::int64_t j = 0;
    if (i + kUnits <= rows) {
      for (; j < whole; j += kUnits) {
        transpose_square<Unit>(
            from + i * from_row + j * kWidth, from_row, to + j * to_row + i * kWidth, to_row);
      }
    }
    for (; j < columns; ++j) {
      for (std::int64_t k = i; k < std::min(i + kUnits, rows); ++k) {
        std::memcpy(to + j * to_row + k * kWidth, from + k * from_row + j * kWidth, sizeof(Unit));
      }
    }
  }
}

// Returns a copy of the rows of a, each padded with zeros to `depth` elements. Rows of the copy
// from m on may hold anything.
at::Tensor packed_rows(
    const Bf16Matrix& a, std::int64_t m, std::int64_t k, std::int64_t depth, bool shared) {
  const at::Tensor packed = at::empty({filled(m), depth}, at::kBFloat16);
  BFloat16* const to = packed.mutable_data_ptr<BFloat16>();
  const std::int64_t blocks = quotient_up(m, kSide);
  at::parallel_for(0, blocks, shared ? 1 : blocks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * kSide; i < std::min(end * kSide, m); i += kSide) {
      const std::int64_t rows = std::min(kSide, m - i);
      if (a.transposed) {
        transpose<std::uint16_t>(a.data + i, a.row, k, rows, to + i * depth, depth);
      }
      for (std::int64_t row = i; row < i + rows; ++row) {
        if (!a.transposed) {
          std::copy_n(a.data + row * a.row, k, to + row * depth);
        }
        std::fill(to + row * depth + k, to + (row + 1) * depth, BFloat16(0));
      }
    }
  });
  return packed;
}

// Copies rows i .. i + rows - 1 and columns j .. j + columns - 1 of b (k x n) in the kernel's
// layout: pairs of rows with alternating elements, `width` columns wide. Elements beyond b are
// zero.
void pack_pairs(
    const Bf16Matrix& b, std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns,
    std::int64_t width, std::int64_t k, BFloat16* to) {
  const std::int64_t pairs = (std::min(i + rows, k) - i) / 2;
  if (columns < width || 2 * pairs < rows) {
    std::fill_n(to, rows * width, BFloat16(0));
  }
  if (b.transposed) {
    transpose<std::uint32_t>(b.data + j * b.row + i, b.row, columns, pairs, to, 2 * width);
  } else {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const BFloat16* const first = b.data + (i + 2 * pair) * b.row + j;
      const BFloat16* const second = first + b.row;
      BFloat16* const place = to + 2 * pair * width;
      std::int64_t column = 0;
      for (; column + 8 <= columns; column += 8) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + column));
        const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + column));
        auto* const both = reinterpret_cast<__m128i*>(place + 2 * column);
        _mm_storeu_si128(both, _mm_unpacklo_epi16(x, y));
        _mm_storeu_si128(both + 1, _mm_unpackhi_epi16(x, y));
      }
      for (; column < columns; ++column) {
        place[2 * column] = first[column];
        place[2 * column + 1] = second[column];
      }
    }
  }
  if (i + 2 * pairs < std::min(i + rows, k)) {  // the last row has no partner
    for (std::int64_t column = 0; column < columns; ++column) {
      to[2 * (pairs * width + column)] =
          b.data[b.transposed ? (j + column) * b.row + k - 1 : (k - 1) * b.row + j + column];
    }
  }
}

// For one block, result = alpha sums + beta result. The rows of `sums` have kSide elements. If
// `transposed`, the result is stored transposed.
void combine(
    const float* __restrict sums, std::int64_t rows, std::int64_t columns, float alpha, float beta,
    bool transposed, float* __restrict result, std::int64_t row_of_result) {
  if (transposed) {
    for (std::int64_t column = 0; column < columns; ++column) {
      float* const place = result + column * row_of_result;
      for (std::int64_t row = 0; row < rows; ++row) {
        const float sum = alpha * sums[row * kSide + column];
        place[row] = beta == 0 ? sum : sum + beta * place[row];
      }
    }
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* __restrict from = sums + row * kSide;
    float* __restrict to = result + row * row_of_result;
    if (beta == 0) {
      for (std::int64_t column = 0; column < columns; ++column) {
        to[column] = alpha * from[column];
      }
    } else {
      for (std::int64_t column = 0; column < columns; ++column) {
        to[column] = alpha * from[column] + beta * to[column];
      }
    }
  }
}

}  // namespace

bool bf16_blocks_run() {
  // LibTorch throws if it was built without oneDNN's brgemm, or if oneDNN was told to use fewer
  // instructions than the CPU has.
  static const bool runs = [] {
    if (__builtin_cpu_supports("avx512bf16") == 0) {
      return false;
    }
    const BFloat16 pair[] = {1, 0};
    float product = 0;
    try {
      at::native::cpublas::brgemm(
          1, 1, 2, 2, 1, 1, /*add_C=*/false, pair, pair, &product, /*is_vnni=*/true);
      at::native::cpublas::brgemm_release();
    } catch (const c10::Error&) {
      return false;
    }
    return product == 1;
  }();
  return runs;
}

bool bf16_blocks_are_fast() {
  static const bool fast = bf16_blocks_run() && __builtin_cpu_is("intel") == 0;
  return fast;
}

void bf16_in_blocks(
    const Bf16Matrix& a, const Bf16Matrix& b, float* c, std::int64_t row_of_c, std::int64_t m,
    std::int64_t n, std::int64_t k, float beta, float alpha) {
  // A transposed left matrix is copied as a whole, the right matrix block by block. The product can
  // also be computed as c^T = b^T a^T. If the left matrix is transposed in both forms, the smaller
  // of a and b goes left, provided that this saves more than transposing c costs. Transposing c
  // takes about eight times as long per element.
  const bool swapped = a.transposed && !b.transposed && k * (m - n) > 8 * m * n;
  const Bf16Matrix left = swapped ? Bf16Matrix{b.data, true, b.row} : a;
  const Bf16Matrix right = swapped ? Bf16Matrix{a.data, false, a.row} : b;
  if (swapped) {
    std::swap(m, n);
  }
  const std::int64_t depth = filled(k);
  const bool shared = m * n * k >= kShared;
  at::Tensor copy;
  const BFloat16* rows_of_left = left.data;
  std::int64_t row_of_left = left.row;
  if (left.transposed || depth != k) {
    copy = packed_rows(left, m, k, depth, shared);
    rows_of_left = copy.const_data_ptr<BFloat16>();
    row_of_left = depth;
  }
  const bool in_place =
      !swapped && alpha == 1 && (beta == 0 || beta == 1) && n % kStep == 0 && row_of_c % kStep == 0;
  // Each task computes a part of a strip. c is cut into strips of kSide columns, and a strip into
  // parts of at most kStripRows rows, or of fewer if there are too few strips for the threads.
  const std::int64_t strips = quotient_up(n, kSide);
  const std::int64_t blocks = quotient_up(m, kSide);
  const std::int64_t parts = std::max(
      quotient_up(m, kStripRows),
      shared ? std::min(blocks, quotient_up(4 * at::get_num_threads(), strips)) : 1);
  const std::int64_t tasks = strips * parts;
  at::parallel_for(0, tasks, shared ? 1 : tasks, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) BFloat16 pairs[kDepth * kSide];
    const at::Tensor strip =
        in_place ? at::Tensor()
                 : at::empty({quotient_up(blocks, parts) * kSide, kSide}, at::kFloat);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t j = task % strips * kSide;
      const std::int64_t columns = std::min(kSide, n - j);
      const std::int64_t width = filled(columns);
      const std::int64_t part = task / strips;
      const std::int64_t first = part * blocks / parts * kSide;
      const std::int64_t last = std::min((part + 1) * blocks / parts * kSide, m);
      for (std::int64_t l = 0; l < depth; l += kDepth) {
        const std::int64_t products = std::min(kDepth, depth - l);
        pack_pairs(right, l, products, j, columns, width, k, pairs);
        for (std::int64_t i = first; i < last; i += kSide) {
          const std::int64_t rows = std::min(kSide, last - i);
          float* const place = swapped ? c + j * row_of_c + i : c + i * row_of_c + j;
          float* const sums =
              in_place ? place : strip.mutable_data_ptr<float>() + (i - first) * kSide;
          at::native::cpublas::brgemm(
              copy.defined() && !in_place ? filled(rows) : rows, width, products, row_of_left,
              width, in_place ? row_of_c : kSide,
              /*add_C=*/l > 0 || (in_place && beta == 1), rows_of_left + i * row_of_left + l, pairs,
              sums, /*is_vnni=*/true);
          if (!in_place && l + products == depth) {
            combine(sums, rows, columns, alpha, beta, swapped, place, row_of_c);
          }
        }
      }
    }
    at::native::cpublas::brgemm_release();
  });
}

}  // namespace abtrain::ops

#else

namespace abtrain::ops {

bool bf16_blocks_run() {
  return false;
}
bool bf16_blocks_are_fast() {
  return false;
}

void bf16_in_blocks(
    const Bf16Matrix&, const Bf16Matrix&, float*, std::int64_t, std::int64_t, std::int64_t,
    std::int64_t, float, float) {
  ABT_ASSERT(false, "this CPU or LibTorch has no blocks of products in bf16");
}

}  // namespace abtrain::ops

#endif
