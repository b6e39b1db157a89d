// The two inner loops of a decomposition in float64, for the vector unit of
// this CPU (AVX-512, AVX2 or plain; chosen at run time), on one thread.
// A symmetric matrix is its lower half, column by column: entry (i, j) at
// [j * stride + i]; its size and stride are multiples of kLine, and rows and
// columns beyond the real matrix are zero. All pointers are the caller's.
#pragma once

#include <cstdint>

namespace abtrain::linalg {

constexpr std::int64_t kLine = 8;  // doubles in a cache line

// W, m x n, entry (i, j) at [i * row_stride + j * column_stride].
template <class T>
struct Matrix {
  const T* data;
  std::int64_t m;
  std::int64_t n;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

constexpr std::int64_t kGramRows = 256;  // rows taken at a time

// sum += (scale W)^T (scale W). scratch: kGramRows * n, n rounded up to kLine.
// Above the diagonal `sum` holds garbage afterwards.
void add_gram(
    const Matrix<float>& w,
    double scale,
    double* scratch,
    double* sum,
    std::int64_t stride);
void add_gram(
    const Matrix<double>& w,
    double scale,
    double* scratch,
    double* sum,
    std::int64_t stride);

// Reflectors are applied in groups that begin at multiples of this; inside its
// group a reflector is zero down to its diagonal.
constexpr std::int64_t kReflectorGroup = 64;

struct Panel {
  double* a;  // the symmetric matrix
  double* w;  // out: column first + k of W at w[k * stride]
  std::int64_t stride;
  std::int64_t n;
  std::int64_t first;  // columns first .. last - 1 are reduced
  std::int64_t last;
  double* diagonal;  // out, n each
  double* off;
  double* tau;
};

// As LAPACK's dlatrd: afterwards column j of `a` holds reflector j below its
// diagonal, its leading one written out (all zero and tau one where there was
// nothing to clear); the caller still owes the rest of the matrix the update A
// -= V W^T + W V^T.
void reduce_panel(const Panel& panel);

}  // namespace abtrain::linalg
