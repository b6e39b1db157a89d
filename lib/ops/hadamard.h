// Walsh-Hadamard transform, in place and not scaled: H H x = block * x, with
// the rows of H in their natural (Sylvester's) order.
//
// x: flat fp32, a multiple of `block` numbers; block: a power of two up to
// 2^30. Sums are taken in one order, stage by stage, so the bits are the same
// on every device. On CUDA the kernels are queued on this thread's current
// stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

void hadamard(const at::Tensor& x, std::int64_t block);

// Log of a power of two; an error that names `what` for another number.
int exact_log2(std::int64_t number, const char* what);

}  // namespace abtrain::ops
