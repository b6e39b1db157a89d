#include "ops/thin_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

namespace {

// CMakeLists.txt lets the compiler turn a product and a sum in this file into one operation.
constexpr int kLanes = 8;
using Lanes [[gnu::vector_size(4 * kLanes)]] = float;
using LanesInMemory [[gnu::vector_size(4 * kLanes), gnu::aligned(4), gnu::may_alias]] = float;

// By reference, because the convention for passing vectors depends on the instruction set.
ABT_INLINE void load(const float* from, Lanes& to) {
  to = *reinterpret_cast<const LanesInMemory*>(from);
}
ABT_INLINE void store(const Lanes& from, float* to) {
  *reinterpret_cast<LanesInMemory*>(to) = from;
}

struct Matrix {
  float* data;
  std::int64_t rows, columns;
  std::int64_t down, right;  // strides

  explicit Matrix(const at::Tensor& t)
      : data(const_cast<float*>(t.const_data_ptr<float>())),
        rows(t.size(0)),
        columns(t.size(1)),
        down(t.stride(0)),
        right(t.stride(1)) {}
  ABT_INLINE float* at(std::int64_t i, std::int64_t j) const {
    return data + i * down + j * right;
  }
};

// Registers for twelve sums leave four for the factors.
template <int kThinRows>
constexpr int kOthers = kThinRows == 1 ? 8 : 12 / kThinRows;

// The products of kRows rows of x, from row i on, and kThinRows rows of w, from row k on. With
// kFetches, also fetches the next kRows rows of x into the cache.
template <int kThinRows, int kRows, bool kFetches>
ABT_INLINE void multiply_rows(
    const Matrix& x, const Matrix& w, const Matrix& out, std::int64_t i, std::int64_t k) {
  Lanes sums[kRows][kThinRows] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= x.columns; j += kLanes) {
    Lanes row[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      load(x.data + (i + r) * x.down + j, row[r]);
      if constexpr (kFetches) {
        __builtin_prefetch(x.data + (i + kRows + r) * x.down + j);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < kThinRows; ++t) {
      Lanes thin;
      load(w.data + (k + t) * w.down + j, thin);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r][t] += row[r] * thin;
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int t = 0; t < kThinRows; ++t) {
      const Lanes& s = sums[r][t];
      float sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
      for (std::int64_t rest = j; rest < x.columns; ++rest) {
        sum += x.data[(i + r) * x.down + rest] * w.data[(k + t) * w.down + rest];
      }
      *out.at(i + r, k + t) = sum;
    }
  }
}

template <int kThinRows>
ABT_INLINE void multiply_group(
    const Matrix& x, const Matrix& w, const Matrix& out, std::int64_t begin, std::int64_t end,
    std::int64_t k) {
  constexpr int kRows = kOthers<kThinRows>;
  std::int64_t i = begin;
  for (; i + kRows <= end; i += kRows) {
    if (k == 0) {
      multiply_rows<kThinRows, kRows, true>(x, w, out, i, k);
    } else {
      multiply_rows<kThinRows, kRows, false>(x, w, out, i, k);
    }
  }
  for (; i < end; ++i) {
    multiply_rows<kThinRows, 1, false>(x, w, out, i, k);
  }
}

// Adds to kThinRows rows of `out`, from row k on, in kVectors vectors of columns, from column j on,
// the terms of the rows begin .. end - 1 of x, one after another.
template <int kThinRows, int kVectors>
ABT_INLINE void add_rows(
    const Matrix& z, const Matrix& x, const Matrix& out, std::int64_t begin, std::int64_t end,
    std::int64_t k, std::int64_t j) {
  Lanes sums[kThinRows][kVectors];
#pragma GCC unroll 4
  for (int t = 0; t < kThinRows; ++t) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      load(out.data + (k + t) * out.down + j + v * kLanes, sums[t][v]);
    }
  }
  for (std::int64_t i = begin; i < end; ++i) {
    Lanes row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      load(x.data + i * x.down + j + v * kLanes, row[v]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < kThinRows; ++t) {
      const float factor = *z.at(i, k + t);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sums[t][v] += row[v] * factor;
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kThinRows; ++t) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      store(sums[t][v], out.data + (k + t) * out.down + j + v * kLanes);
    }
  }
}

// add_rows() for the columns begin .. end - 1.
template <int kThinRows>
ABT_INLINE void add_group(
    const Matrix& z, const Matrix& x, const Matrix& out, std::int64_t first, std::int64_t last,
    std::int64_t begin, std::int64_t end, std::int64_t k) {
  constexpr int kVectors = kOthers<kThinRows>;
  std::int64_t j = begin;
  for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) {
    add_rows<kThinRows, kVectors>(z, x, out, first, last, k, j);
  }
  for (; j + kLanes <= end; j += kLanes) {
    add_rows<kThinRows, 1>(z, x, out, first, last, k, j);
  }
  for (; j < end; ++j) {
    for (int t = 0; t < kThinRows; ++t) {
      float sum = out.data[(k + t) * out.down + j];
      for (std::int64_t i = first; i < last; ++i) {
        sum += x.data[i * x.down + j] * *z.at(i, k + t);
      }
      out.data[(k + t) * out.down + j] = sum;
    }
  }
}

// Calls body.operator()<N>(k) for groups of N thin rows, at most four.
ABT_INLINE void for_groups(std::int64_t thin_rows, const auto& body) {
  std::int64_t k = 0;
  for (; k + 4 <= thin_rows; k += 4) {
    body.template operator()<4>(k);
  }
  switch (thin_rows - k) {
    case 3:
      return body.template operator()<3>(k);
    case 2:
      return body.template operator()<2>(k);
    case 1:
      return body.template operator()<1>(k);
    default:
      return;
  }
}

// The least part that is worth a thread, in rows or columns of `work` multiplications each.
std::int64_t grain(std::int64_t work) {
  constexpr std::int64_t kWork = 1 << 17;
  return std::max<std::int64_t>(1, kWork / std::max<std::int64_t>(1, work));
}

void check(
    const at::Tensor& x, const at::Tensor& wide, const at::Tensor& narrow, const char* what) {
  ABT_ASSERT(
      x.dim() == 2 && wide.dim() == 2 && narrow.dim() == 2 && wide.size(1) == x.size(1) &&
          narrow.size(0) == x.size(0) && narrow.size(1) == wide.size(0) &&
          x.scalar_type() == wide.scalar_type() && x.scalar_type() == narrow.scalar_type(),
      "{}: expected matrices that match, got {}{}, {} and {}", what, x.scalar_type(), x.sizes(),
      wide.sizes(), narrow.sizes());
}

}  // namespace

bool has_thin_products(const at::Tensor& x, std::int64_t r) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.stride(1) == 1 && r <= kThin;
}

void thin_product(const at::Tensor& x, const at::Tensor& w, at::Tensor out) {
  check(x, w, out, "thin_product");
  if (!has_thin_products(x, w.size(0)) || w.stride(1) != 1) {
    at::mm_out(out, x, w.t());
    return;
  }
  const Matrix rows(x), thin(w), to(out);
  // All groups read a block of rows while it is in the cache; a multiple of kOthers. Threads take
  // whole blocks, so that the bits do not depend on their number.
  constexpr std::int64_t kBlock = 24;
  at::parallel_for(
      0, (rows.rows + kBlock - 1) / kBlock, grain(kBlock * rows.columns * thin.rows),
      [&](std::int64_t first_block, std::int64_t last_block) {
        vectorized([&]() ABT_INLINED {
          for (std::int64_t block = first_block; block < last_block; ++block) {
            const std::int64_t first = block * kBlock;
            const std::int64_t last = std::min(first + kBlock, rows.rows);
            for_groups(thin.rows, [&]<int kThinRows>(std::int64_t k) ABT_INLINED {
              multiply_group<kThinRows>(rows, thin, to, first, last, k);
            });
          }
        });
      });
}

void add_thin_sums(const at::Tensor& z, const at::Tensor& x, at::Tensor out) {
  check(x, out, z, "add_thin_sums");
  if (!has_thin_products(x, out.size(0)) || out.stride(1) != 1) {
    at::addmm_out(out, out, z.t(), x);
    return;
  }
  const Matrix narrow(z), rows(x), to(out);
  // Threads take whole vectors, for the same reason.
  at::parallel_for(
      0, (rows.columns + kLanes - 1) / kLanes, grain(kLanes * rows.rows * to.rows),
      [&](std::int64_t first_vector, std::int64_t last_vector) {
        const std::int64_t begin = first_vector * kLanes;
        const std::int64_t end = std::min(last_vector * kLanes, rows.columns);
        vectorized([&]() ABT_INLINED {
          // So few rows that the processor foresees which memory is read next.
          constexpr std::int64_t kBlock = 8;
          for (std::int64_t first = 0; first < rows.rows; first += kBlock) {
            const std::int64_t last = std::min(rows.rows, first + kBlock);
            for_groups(to.rows, [&]<int kThinRows>(std::int64_t k) ABT_INLINED {
              add_group<kThinRows>(narrow, rows, to, first, last, begin, end, k);
            });
          }
        });
      });
}

}  // namespace abtrain::ops
