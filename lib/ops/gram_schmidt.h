// Orthonormalizes, in place, the rows of many small matrices that lie in one
// flat fp32 tensor. It is modified Gram-Schmidt with each row treated twice
// (Giraud et al., "The loss of orthogonality in the Gram-Schmidt
// orthogonalization process", 2005) and sums in fp64.
//
// For each k, the first k rows keep their span. A row that depends on the rows before it (less than
// 1e-5 of its length is left), such as a row of zeros, is replaced by a row that is orthonormal to
// them. That row is made from the unit vector along the axis in which the rows before it have the
// smallest sum of squares. The result never has a NaN, even if a row holds one. If no matrix has
// more than kGramPanel rows, CPU and CUDA results are bit-identical, and on CUDA one kernel handles
// up to kMaxRowSets matrices. Kernels are queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/blocks/gram_schmidt.h"

namespace abtrain::ops {

using kernels::RowSet;

constexpr std::int64_t kGramPanel = 8;

void gram_schmidt(const at::Tensor& flat, const std::vector<RowSet>& sets);

// Does the same as gram_schmidt(), which calls this function on CUDA if a matrix has more than
// kGramPanel rows. It takes kGramPanel rows at a time and subtracts their projections on the rows
// before them by matrix products, twice. It also works on the CPU, where its results differ from
// gram_schmidt()'s by rounding.
void gram_schmidt_in_panels(const at::Tensor& flat, const std::vector<RowSet>& sets);

}  // namespace abtrain::ops
