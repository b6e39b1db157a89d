// Walsh-Hadamard transform, in place and unscaled: H H x = block * x, with the
// rows of H in their natural (Sylvester) order.
//
// x: flat fp32, a multiple of `block` elements. block: a power of two up to
// 2^30. Sums are taken in one order, stage by stage, so every device gives the
// same bits. On CUDA the kernels are queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

void hadamard(const at::Tensor& x, std::int64_t block);

// Base-2 logarithm of a power of two up to 2^30. For any other number it throws
// an error that names `what`.
int exact_log2(std::int64_t number, const char* what);

}  // namespace abtrain::ops
