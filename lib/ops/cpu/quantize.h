// The host forms of quantize.h that have one per instruction set.
#pragma once

#include "kernels/codes/quantize.h"
#include "ops/cpu/simd.h"
#include "ops/quantize.h"

namespace abtrain::ops {

void block_norms_cpu(const at::Tensor& u, int log_size, const at::Tensor& norms, Simd simd);

}  // namespace abtrain::ops

namespace abtrain::kernels {

void work_on_host(const Quantize& job, ops::Simd simd);
void work_on_host(const Dequantize& job, ops::Simd simd);

}  // namespace abtrain::kernels
