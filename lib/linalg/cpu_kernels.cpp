#include "linalg/cpu_kernels.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/simd.h"

namespace abtrain::linalg {
namespace {

template <int Width>
struct Lanes {
  typedef double Vector __attribute__((vector_size(Width * 8), aligned(8), may_alias));
};

// All row ranges below start and end on a cache line (the padding is zero).
template <int Width>
ABT_INLINE double dot(const double* x, const double* y, std::int64_t from, std::int64_t to) {
  using V = typename Lanes<Width>::Vector;
  V sum[2] = {};
  for (auto i = from; i < to; i += 8) {
    for (int part = 0; part < 8 / Width; ++part) {
      const auto offset = i + part * Width;
      sum[part % 2] +=
          *reinterpret_cast<const V*>(x + offset) * *reinterpret_cast<const V*>(y + offset);
    }
  }
  const V both = sum[0] + sum[1];
  double total = 0;
  for (int lane = 0; lane < Width; ++lane) {
    total += both[lane];
  }
  return total;
}

// y += a * u + b * w.
template <int Width>
ABT_INLINE void add_two(
    double* y, const double* u, double a, const double* w, double b, std::int64_t from,
    std::int64_t to) {
  using V = typename Lanes<Width>::Vector;
  for (auto i = from; i < to; i += Width) {
    *reinterpret_cast<V*>(y + i) +=
        *reinterpret_cast<const V*>(u + i) * a + *reinterpret_cast<const V*>(w + i) * b;
  }
}

// y = A x over rows and columns from .. n - 1, using the lower half only: each
// entry is loaded once and used twice.
template <int Width>
ABT_INLINE void symmetric_times(
    const double* a, std::int64_t stride, const double* x, double* y, std::int64_t from,
    std::int64_t n) {
  using V = typename Lanes<Width>::Vector;
  constexpr int kColumns = 8;
  std::fill(y + from, y + n, 0.0);
  for (auto c = from; c < n; c += kColumns) {
    const double* column = a + c * stride;
    for (int q = 0; q < kColumns; ++q) {
      const double* col = column + q * stride;
      double sum = col[c + q] * x[c + q];
      for (auto i = c + q + 1; i < c + kColumns; ++i) {
        y[i] += col[i] * x[c + q];
        sum += col[i] * x[i];
      }
      y[c + q] += sum;
    }
    V sums[kColumns] = {};
    for (auto i = c + kColumns; i < n; i += Width) {
      const V xi = *reinterpret_cast<const V*>(x + i);
      V yi = *reinterpret_cast<V*>(y + i);
      for (int q = 0; q < kColumns; ++q) {
        const V entry = *reinterpret_cast<const V*>(column + q * stride + i);
        yi += entry * x[c + q];
        sums[q] += entry * xi;
      }
      *reinterpret_cast<V*>(y + i) = yi;
    }
    for (int q = 0; q < kColumns; ++q) {
      for (int lane = 0; lane < Width; ++lane) {
        y[c + q] += sums[q][lane];
      }
    }
  }
}

// Copies rows first .. last - 1 of scale * W as float64, Width columns at a time: column g * Width
// + q of row i goes to [(g * rows + i) * Width + q].
template <int Width, class T>
ABT_INLINE void pack(
    const Matrix<T>& w, double scale, std::int64_t first, std::int64_t last, double* packed) {
  const auto rows = last - first;
  for (std::int64_t c = 0; c < w.n; c += Width) {
    double* to = packed + c * rows;
    const T* from = w.data + first * w.row_stride + c * w.column_stride;
    if (c + Width <= w.n && w.column_stride == 1) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (int q = 0; q < Width; ++q) {
          to[i * Width + q] = scale * from[i * w.row_stride + q];
        }
      }
      continue;
    }
    for (int q = 0; q < Width; ++q) {
      const bool real = c + q < w.n;
      for (std::int64_t i = 0; i < rows; ++i) {
        to[i * Width + q] = real ? scale * from[i * w.row_stride + q * w.column_stride] : 0;
      }
    }
  }
}

// Adds a product to a tile of the sum, Count * Width rows by Width columns, which is held in
// registers.
template <int Width, int Count>
ABT_INLINE void add_tile(
    const double* left, const double* right, std::int64_t rows, double* sum, std::int64_t stride) {
  using V = typename Lanes<Width>::Vector;
  V tile[Count][Width] = {};
  for (std::int64_t i = 0; i < rows; ++i) {
    V l[Count];
    for (int part = 0; part < Count; ++part) {
      l[part] = *reinterpret_cast<const V*>(left + (part * rows + i) * Width);
    }
#pragma GCC unroll 8
    for (int q = 0; q < Width; ++q) {
      const double r = right[i * Width + q];
      for (int part = 0; part < Count; ++part) {
        tile[part][q] += l[part] * r;
      }
    }
  }
  for (int q = 0; q < Width; ++q) {
    for (int part = 0; part < Count; ++part) {
      *reinterpret_cast<V*>(sum + q * stride + part * Width) += tile[part][q];
    }
  }
}

// sum += L R^T, for the lower half of rows and columns from .. n - 1. L and R have `rows` columns
// and are packed as by pack().
template <int Width>
ABT_INLINE void add_product(
    const double* left, const double* right, std::int64_t rows, std::int64_t from, std::int64_t n,
    double* sum, std::int64_t stride) {
  for (auto c = from; c < n; c += Width) {
    double* column = sum + c * stride;
    auto r = c;
    for (; r + 3 * Width <= n; r += 3 * Width) {
      add_tile<Width, 3>(left + r * rows, right + c * rows, rows, column + r, stride);
    }
    for (; r < n; r += Width) {
      add_tile<Width, 1>(left + r * rows, right + c * rows, rows, column + r, stride);
    }
  }
}

template <int Width, class T>
ABT_INLINE void gram(
    const Matrix<T>& w, double scale, double* scratch, double* sum, std::int64_t stride) {
  const auto n = (w.n + Width - 1) / Width * Width;
  for (std::int64_t first = 0; first < w.m; first += kGramRows) {
    const auto last = std::min(first + kGramRows, w.m);
    const auto rows = last - first;
    pack<Width>(w, scale, first, last, scratch);
    add_product<Width>(scratch, scratch, rows, 0, n, sum, stride);
  }
}

// A -= V W^T + W V^T to the right of the panel, computed as one product: A += [V W] [-W -V]^T.
template <int Width>
ABT_INLINE void update(const Panel& p) {
  const auto columns = p.last - p.first;
  const auto pairs = 2 * columns;
  double* left = p.scratch;
  double* right = p.scratch + pairs * p.n;
  for (std::int64_t k = 0; k < columns; ++k) {
    const double* v = p.a + (p.first + k) * p.stride;
    const double* w = p.w + k * p.stride;
    for (auto i = p.last; i < p.n; i += Width) {
      double* l = left + i * pairs + k * Width;
      double* r = right + i * pairs + k * Width;
      for (int q = 0; q < Width; ++q) {
        l[q] = v[i + q];
        l[columns * Width + q] = w[i + q];
        r[q] = -w[i + q];
        r[columns * Width + q] = -v[i + q];
      }
    }
  }
  add_product<Width>(left, right, pairs, p.last, p.n, p.a, p.stride);
}

// Reduces the columns first .. last - 1 of the panel, as LAPACK's dlatrd does.
template <int Width>
ABT_INLINE void reduce(const Panel& p) {
  const auto n = p.n;
  for (auto j = p.first; j < p.last; ++j) {
    double* column = p.a + j * p.stride;
    double* y = p.w + (j - p.first) * p.stride;
    // Applies the updates that the panel's earlier columns left pending for
    // this one.
    const auto line = j / kLine * kLine;
    for (auto k = p.first; k < j; ++k) {
      const double* v = p.a + k * p.stride;
      const double* w = p.w + (k - p.first) * p.stride;
      add_two<Width>(column, v, -w[j], w, -v[j], line, n);
    }
    p.diagonal[j] = column[j];
    if (j + 1 >= n) {
      continue;
    }
    // Computes the reflector that clears everything below the first entry under the diagonal.
    const auto from = (j + 1) / kLine * kLine;
    double* v = column;
    std::fill(v + j / kReflectorGroup * kReflectorGroup, v + j + 1, 0.0);
    const double alpha = v[j + 1];
    v[j + 1] = 0;
    const double square = dot<Width>(v, v, from, n);
    if (square == 0) {
      p.off[j] = alpha;
      p.tau[j] = 1;
      std::fill(y + from, y + n, 0.0);
      continue;
    }
    const double beta = -std::copysign(std::sqrt(alpha * alpha + square), alpha);
    const double tau = (beta - alpha) / beta;
    const double scale = 1 / (alpha - beta);
    for (auto i = from; i < n; ++i) {
      v[i] *= scale;
    }
    v[j + 1] = 1;
    p.off[j] = beta;
    p.tau[j] = tau;

    symmetric_times<Width>(p.a, p.stride, v, y, from, n);
    for (auto k = p.first; k < j; ++k) {
      const double* vk = p.a + k * p.stride;
      const double* wk = p.w + (k - p.first) * p.stride;
      const double wv = dot<Width>(wk, v, from, n);
      const double vv = dot<Width>(vk, v, from, n);
      add_two<Width>(y, vk, -wv, wk, -vv, from, n);
    }
    const double half = -0.5 * tau * tau * dot<Width>(y, v, from, n);
    for (auto i = from; i < n; ++i) {
      y[i] = tau * y[i] + half * v[i];
    }
    std::fill(y + from, y + j + 1, 0.0);
  }
  update<Width>(p);
}

// Calls work.operator()<Width>(), compiled for the vector unit of that width.
#if defined(__x86_64__)
template <class Work>
__attribute__((target("avx512f,fma"))) void in_eights(const Work& work) {
  work.template operator()<8>();
}
template <class Work>
__attribute__((target("avx2,fma"))) void in_fours(const Work& work) {
  work.template operator()<4>();
}
#endif
template <class Work>
void for_width(int width, const Work& work) {
#if defined(__x86_64__)
  if (width == 8) {
    return in_eights(work);
  }
  if (width == 4) {
    return in_fours(work);
  }
#endif
  (void)width;
  work.template operator()<2>();
}

}  // namespace

int best_width() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return 8;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return 4;
  }
#endif
  return 2;
}

void reduce_panel(const Panel& panel, int width) {
  for_width(width, [&]<int Width>() ABT_INLINED { reduce<Width>(panel); });
}

template <class T>
void add_gram(
    const Matrix<T>& w, double scale, double* scratch, double* sum, std::int64_t stride,
    int width) {
  for_width(width, [&]<int Width>() ABT_INLINED { gram<Width>(w, scale, scratch, sum, stride); });
}

template void add_gram(const Matrix<float>&, double, double*, double*, std::int64_t, int);
template void add_gram(const Matrix<double>&, double, double*, double*, std::int64_t, int);

}  // namespace abtrain::linalg
