// The inner loop of the tridiagonal reduction, for the vector unit of this CPU
// (AVX-512, AVX2 or plain; chosen at run time).
#pragma once

#include <cstdint>

namespace abtrain::linalg {

constexpr std::int64_t kLine = 8;  // doubles in a cache line

// A symmetric matrix, lower half, column by column; all pointers belong to the
// caller. Rows and columns beyond the real matrix, up to n, are zero.
struct Panel {
  double* a;            // entry (i, j) at a[j * stride + i]
  double* w;            // out: column first + k of W at w[k * stride]
  std::int64_t stride;  // a multiple of kLine
  std::int64_t n;       // a multiple of kLine
  std::int64_t first;   // columns first .. last - 1 are reduced
  std::int64_t last;
  double* diagonal;  // out, n each
  double* off;
  double* tau;
};

// As LAPACK's dlatrd: afterwards column j of `a` holds reflector j below its
// diagonal (its leading one written out), and the caller still owes the rest
// of the matrix the update A -= V W^T + W V^T.
void reduce_panel(const Panel& panel);

}  // namespace abtrain::linalg
