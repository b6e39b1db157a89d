// Gram-Schmidt over the rows of one matrix, once for a block of threads and
// once for the host: the members of a Team are its lanes, each has the numbers
// i with i % kRowLanes == lane. One source, so that both have the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

constexpr int kRowLanes = 128;

// Of a row, what is left beside the rows before it is taken for rounding errors
// below this part of its squared length.
constexpr double kDependent = 1e-10;

// A Team gives
//   dot(a, b)          sum of the products, fp64, in lanes added in halves
//   add(a, factor, b)  a += factor * b, computed in fp64, rounded once
//   scale(a, factor)   the same for a *= factor
//   set_unit(a, rows, k)  a = the unit vector in whose direction the k rows
//                      before it have least, the first of equal ones
template <class Team>
ABT_HOST_DEVICE void
orthonormal_rows(Team& team, float* rows, int count, std::int64_t length) {
  for (int k = 0; k < count; ++k) {
    float* row = rows + k * length;
    // What depends on the rows before it, zero among them, gives way to a unit
    // vector: no NaN, and as good as any other direction.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const double before = team.dot(row, row);
      // Twice, or a row that is nearly dependent would not be orthogonal.
      for (int pass = 0; pass < 2; ++pass) {
        for (int j = 0; j < k; ++j) {
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
