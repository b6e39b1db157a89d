// The forms of quantize.h behind its dispatch; arguments are checked.
#pragma once

#include "kernels/quantize.h"
#include "ops/quantize.h"
#include "ops/simd_cpu.h"

namespace abtrain::ops {

void block_norms_cpu(
    const at::Tensor& u,
    int log_size,
    const at::Tensor& norms,
    Simd simd);
void quantize_blocks_cpu(const kernels::Quantize& job, Simd simd);
void dequantize_blocks_cpu(const kernels::Dequantize& job, Simd simd);
void sum_codes_cpu(const at::Tensor& in, int members, const at::Tensor& out);
void update_scale_cpu(const kernels::UpdateScale& job);

void block_norms_cuda(
    const at::Tensor& u,
    int log_size,
    const at::Tensor& norms);
// Of these two the job's `room` is still to be had.
void quantize_blocks_cuda(kernels::Quantize job, const at::Tensor& u);
void dequantize_blocks_cuda(kernels::Dequantize job, const at::Tensor& out);
void sum_codes_cuda(const at::Tensor& in, int members, const at::Tensor& out);
void update_scale_cuda(
    const kernels::UpdateScale& job,
    const at::Tensor& scale);

}  // namespace abtrain::ops
