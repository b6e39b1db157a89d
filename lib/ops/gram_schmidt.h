// Orthonormalizes, in place, the rows of many small matrices that lie in one
// flat fp32 tensor. It is modified Gram-Schmidt with each row treated twice
// (Giraud et al., "The loss of orthogonality in the Gram-Schmidt
// orthogonalization process", 2005) and sums in fp64.
//
// For each k, the first k rows keep their span. A row that depends on those before it (less than
// 1e-5 of it is left), such as a row of zeros, is replaced by one orthonormal to them. The new row
// is built from the unit vector along the axis where they have the smallest weight. The result
// never has a NaN, even from a row that holds one. Up to kGramPanel rows, CPU and CUDA give the
// same bits, and on CUDA one kernel handles all matrices; it is queued on this thread's current
// stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/blocks/gram_schmidt.h"

namespace abtrain::ops {

using kernels::RowSet;

constexpr std::int64_t kGramPanel = 8;

void gram_schmidt(const at::Tensor& flat, const std::vector<RowSet>& sets);

// The form for more rows on CUDA; it also works on the CPU, with other bits. It takes rows in
// panels. Matrix products, done twice, subtract from a panel its projection on the rows before it.
void gram_schmidt_in_panels(const at::Tensor& flat, const std::vector<RowSet>& sets);

}  // namespace abtrain::ops
