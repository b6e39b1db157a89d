// Products of bf16 matrices in blocks, by oneDNN's brgemm as LibTorch exports it, for CPUs on which
// MKL emulates such products. bf16_product.h calls this and defines the product.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace abtrain::ops {

// Element (i, j) is data[i * row + j], or data[j * row + i] if transposed.
struct Bf16Matrix {
  const at::BFloat16* data;
  bool transposed;
  std::int64_t row;
};

// Whether this CPU (it needs AVX512-BF16) and this LibTorch can run bf16_in_blocks().
bool bf16_blocks_run();
// Whether bf16_in_blocks() runs and is faster than MKL, which is tuned for Intel's CPUs. On an AMD
// EPYC it is twice as fast as MKL (docs/results/cpu.md).
bool bf16_blocks_are_fast();

// c = alpha a b + beta c, where a is m x k, k > 0, b is k x n, and c, m x n, has contiguous rows.
// The order of summation does not depend on the number of threads.
void bf16_in_blocks(
    const Bf16Matrix& a, const Bf16Matrix& b, float* c, std::int64_t row_of_c, std::int64_t m,
    std::int64_t n, std::int64_t k, float beta, float alpha);

}  // namespace abtrain::ops
