// Rows of many small matrices that lie in one flat fp32 tensor made
// orthonormal, in place: modified Gram-Schmidt, each row twice (Giraud et al.,
// "The loss of orthogonality in the Gram-Schmidt orthogonalization process",
// 2005), sums in fp64.
//
// The first rows span what the first rows spanned. A row that depends on those
// before it (a part of less than 1e-5 is left of it), zero among them, becomes
// orthonormal to them all the same, out of the unit vector in whose direction
// they have least: there is no NaN, not even of a row that holds one. The CPU
// and CUDA give the same bits. On CUDA it is one kernel for all matrices,
// queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace abtrain::ops {

// A matrix of rows x length, rows <= length, row by row from `offset` on.
struct RowSet {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t length = 0;
};

void gram_schmidt(const at::Tensor& flat, const std::vector<RowSet>& sets);

}  // namespace abtrain::ops
