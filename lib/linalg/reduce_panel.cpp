#include "linalg/reduce_panel.h"

#include <algorithm>
#include <cmath>

namespace abtrain::linalg {
namespace {

#define ABT_INLINE inline __attribute__((always_inline))

template <int Width>
struct Lanes {
  typedef double Vector
      __attribute__((vector_size(Width * 8), aligned(8), may_alias));
};

// All row ranges below start and end on a cache line (the padding is zero).
template <int Width>
ABT_INLINE double
dot(const double* x, const double* y, std::int64_t from, std::int64_t to) {
  using V = typename Lanes<Width>::Vector;
  V sum[2] = {};
  for (auto i = from; i < to; i += 8) {
    for (int part = 0; part < 8 / Width; ++part) {
      const auto at = i + part * Width;
      sum[part % 2] += *reinterpret_cast<const V*>(x + at) *
                       *reinterpret_cast<const V*>(y + at);
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
    double* y,
    const double* u,
    double a,
    const double* w,
    double b,
    std::int64_t from,
    std::int64_t to) {
  using V = typename Lanes<Width>::Vector;
  for (auto i = from; i < to; i += Width) {
    *reinterpret_cast<V*>(y + i) += *reinterpret_cast<const V*>(u + i) * a +
                                    *reinterpret_cast<const V*>(w + i) * b;
  }
}

// y = A x over rows and columns from .. n, from the lower half alone: each
// entry is loaded once and used twice.
template <int Width>
ABT_INLINE void symmetric_times(
    const double* a,
    std::int64_t stride,
    const double* x,
    double* y,
    std::int64_t from,
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

// Reduces the columns first .. last of the panel, as LAPACK's dlatrd.
template <int Width>
ABT_INLINE void reduce(const Panel& p) {
  const auto n = p.n;
  for (auto j = p.first; j < p.last; ++j) {
    double* column = p.a + j * p.stride;
    double* y = p.w + (j - p.first) * p.stride;
    // What the earlier columns of the panel owe to this one.
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
    // The reflector that clears all below the first entry under the diagonal;
    // its rows above are made zero for whole cache lines.
    const auto from = (j + 1) / kLine * kLine;
    double* v = column;
    std::fill(v + from, v + j + 1, 0.0);
    const double alpha = v[j + 1];
    v[j + 1] = 0;
    const double square = dot<Width>(v, v, from, n);
    if (square == 0) {
      p.off[j] = alpha;
      p.tau[j] = 0;
      v[j + 1] = 1;
      std::fill(y + from, y + n, 0.0);
      continue;
    }
    const double beta =
        -std::copysign(std::sqrt(alpha * alpha + square), alpha);
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
}

#if defined(__x86_64__)
__attribute__((target("avx512f,fma"))) void reduce_avx512(const Panel& p) {
  reduce<8>(p);
}
__attribute__((target("avx2,fma"))) void reduce_avx2(const Panel& p) {
  reduce<4>(p);
}
#endif

}  // namespace

void reduce_panel(const Panel& panel) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return reduce_avx512(panel);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return reduce_avx2(panel);
  }
#endif
  reduce<2>(panel);
}

}  // namespace abtrain::linalg
