#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/rows_backends.h"

namespace abtrain::ops {

void row_norms_cuda(const kernels::RowNorms& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::row_norms(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void choose_rows_cuda(const kernels::ChooseRows& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::choose_rows(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void send_rows_cuda(const kernels::SendRows& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::send_rows(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void add_rows_cuda(const kernels::AddRows& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::add_rows(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
