// Products of bf16 factors in blocks of oneDNN's brgemm, as LibTorch exports it, for CPUs on which
// MKL emulates them. bf16_product.h calls it and says what a product is.
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

// Whether this CPU and this LibTorch can run bf16_in_blocks(): it takes AVX512-BF16.
bool bf16_blocks_run();
// Whether they are faster than MKL, whose kernels are for Intel's CPUs: on a core of an AMD EPYC
// (Zen 4), 4160 x 192 times 192 x 768, MKL reaches 94 GF/s, as in fp32, and the blocks 205.
bool bf16_blocks_are_fast();

// c = alpha a b + beta c, where a is m x k, b is k x n, and c, m x n, has contiguous rows. Sums
// have the same order for any number of threads.
void bf16_in_blocks(
    const Bf16Matrix& a, const Bf16Matrix& b, float* c, std::int64_t row_of_c, std::int64_t m,
    std::int64_t n, std::int64_t k, float beta, float alpha);

}  // namespace abtrain::ops
