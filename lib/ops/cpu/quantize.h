// The forms of quantize.h on the CPU; arguments are checked.
#pragma once

#include "kernels/codes/quantize.h"
#include "ops/cpu/simd.h"
#include "ops/quantize.h"

namespace abtrain::ops {

void block_norms_cpu(const at::Tensor& u, int log_size, const at::Tensor& norms, Simd simd);
void quantize_blocks_cpu(const kernels::Quantize& job, Simd simd);
void dequantize_blocks_cpu(const kernels::Dequantize& job, Simd simd);
void sum_codes_cpu(const at::Tensor& in, int members, const at::Tensor& out);

}  // namespace abtrain::ops
