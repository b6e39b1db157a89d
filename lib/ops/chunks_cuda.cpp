#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "kernels/chunks.h"
#include "ops/chunks_backends.h"

namespace abtrain::ops {

namespace {

void* current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

kernels::Chunks chunks_of(
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& numbers) {
  return {
      indices.const_data_ptr<std::int32_t>(),
      indices.numel(),
      chunk,
      numbers.numel()};
}

}  // namespace

void add_with_norms_cuda(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms) {
  const c10::cuda::CUDAGuard guard(u.device());
  ABT_CUDA_CHECK(kernels::add_with_norms(
      u.mutable_data_ptr<float>(),
      g.const_data_ptr<float>(),
      add,
      u.numel(),
      chunk,
      norms.mutable_data_ptr<float>(),
      current_stream()));
}

void take_chunks_cuda(
    const at::Tensor& u,
    const at::Tensor& indices,
    std::int64_t chunk,
    int members,
    const at::Tensor& wire) {
  const c10::cuda::CUDAGuard guard(u.device());
  ABT_CUDA_CHECK(kernels::take_chunks(
      chunks_of(indices, chunk, u),
      u.mutable_data_ptr<float>(),
      members,
      wire.mutable_data_ptr(),
      current_stream()));
}

void put_chunks_cuda(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how) {
  const c10::cuda::CUDAGuard guard(out.device());
  ABT_CUDA_CHECK(kernels::put_chunks(
      chunks_of(indices, chunk, out),
      wire.const_data_ptr(),
      out.mutable_data_ptr<float>(),
      how == Put::Add,
      current_stream()));
}

}  // namespace abtrain::ops
