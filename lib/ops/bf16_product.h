// c = alpha a b + beta c for matrices a and b in bf16. Sums and the result are fp32, so only the
// caller rounds to bf16. Correct but slow on CPUs without instructions for bf16.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

// a: m x k, b: k x n, bf16; c: m x n, fp32. Each has contiguous rows or contiguous columns. With
// beta = 0 nothing is read from c.
void bf16_product(
    const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, float beta = 0, float alpha = 1);

// The smallest number of multiplications (m k n) for which the casts to bf16 plus the bf16 product
// are faster than the fp32 product on this CPU (docs/results/cpu.md); the largest int64 if they
// never are. `thin`: one side of a matrix is below 16.
std::int64_t bf16_product_pays_from(bool thin);

}  // namespace abtrain::ops
