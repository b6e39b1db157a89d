// Gram-Schmidt over the rows of one matrix, for a thread block and for the host. A Team consists of
// kGramLanes lanes; a lane holds the elements i of a row with i % kGramLanes == lane. GPU and CPU
// compile this one source, so that their results are bit-identical.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

constexpr int kGramLanes = 128;

// If less than this part of a row's squared length is left after subtracting
// its projections on the rows before it, the rest is considered rounding error.
constexpr double kDependent = 1e-10;

// A Team provides
//   dot(a, b)          the sum of a[i] b[i] in fp64: each lane sums its elements, then the upper
//                      half of the lanes is added to the lower half until one lane is left
//   add(a, factor, b)  a += factor * b, computed in fp64 and rounded once
//   scale(a, factor)   a *= factor, computed in fp64 and rounded once
//   set_unit(a, rows, k)  a = the unit vector along the axis in which the first k rows have the
//                      smallest sum of squares (the first such axis on ties)
//
// Orthonormalizes rows done .. count - 1. The first `done` rows stay unchanged; the other rows must
// be orthogonal to them already.
template <class Team>
ABT_INLINE void orthonormal_rows(
    Team& team, float* rows, int done, int count, std::int64_t length) {
  for (int k = done; k < count; ++k) {
    float* row = rows + k * length;
    // A row that depends linearly on the rows before it (such as a row of zeros) or holds a NaN is
    // replaced by a unit vector, which the second attempt makes orthogonal to these rows. That
    // avoids NaN, and the direction is as good as any other.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const double before = team.dot(row, row);
      // After only one pass, a nearly dependent row would not be orthogonal.
      for (int pass = 0; pass < 2; ++pass) {
        for (int j = attempt == 0 ? done : 0; j < k; ++j) {
          const float* other = rows + j * length;
          team.add(row, -team.dot(row, other), other);
        }
      }
      const double after = team.dot(row, row);
      if (attempt == 1 || after > kDependent * before) {
        team.scale(row, 1.0 / ::sqrt(after));
        break;
      }
      team.set_unit(row, rows, k);
    }
  }
}

}  // namespace abtrain::kernels
