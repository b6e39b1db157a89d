// The two inner loops of a decomposition in float64, for the vector unit of
// this CPU (AVX-512, AVX2 or plain), on one thread.
//
// A symmetric matrix is stored as its lower half, column by column: entry (i,
// j) is at [j * stride + i]; its size and stride are multiples of kLine, and
// rows and columns beyond the real matrix are zero. The caller owns the memory
// behind all pointers.
#pragma once

#include <cstdint>

namespace abtrain::linalg {

constexpr std::int64_t kLine = 8;  // doubles in a cache line

// The number of doubles in a vector of this CPU: 8, 4 or 2. The kernels accept any of these widths
// up to best_width(), so that tests can run them all.
int best_width();

// W, m x n; entry (i, j) is at [i * row_stride + j * column_stride].
template <class T>
struct Matrix {
  const T* data;
  std::int64_t m;
  std::int64_t n;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

constexpr std::int64_t kGramRows = 256;  // rows processed at a time

// sum += (scale W)^T (scale W). scratch: kGramRows * n doubles, with n rounded up to a multiple of
// kLine. Afterwards `sum` holds garbage above the diagonal.
template <class T>  // float or double
void add_gram(
    const Matrix<T>& w, double scale, double* scratch, double* sum, std::int64_t stride, int width);

// Householder reflectors are applied in groups that begin at multiples of this; within its group, a
// reflector is zero above its leading entry, which is 1.
constexpr std::int64_t kReflectorGroup = 64;

constexpr std::int64_t kPanel = 16;  // columns; divides kReflectorGroup

struct Panel {
  double* a;        // the symmetric matrix
  double* w;        // kPanel * stride: the panel's columns of dlatrd's W
  double* scratch;  // 4 * kPanel * n
  std::int64_t stride;
  std::int64_t n;
  std::int64_t first;  // columns first .. last - 1, at most kPanel
  std::int64_t last;
  double* diagonal;  // outputs, n doubles each
  double* off;
  double* tau;
};

// Reduces one panel to tridiagonal form, as LAPACK's dlatrd does, and updates the rest of the
// matrix. Afterwards column j of `a` holds reflector j below the diagonal, leading 1 included (if
// there was nothing to clear, the reflector is all zeros and tau is 1).
void reduce_panel(const Panel& panel, int width);

}  // namespace abtrain::linalg
