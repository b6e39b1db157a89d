#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "base/error.h"
#include "device/cuda_check.h"
#include "kernels/hadamard.h"
#include "ops/quantize_backends.h"

namespace abtrain::ops {

namespace {

void* current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

void check_alignment(const void* codes) {
  ABT_ASSERT(
      reinterpret_cast<std::uintptr_t>(codes) % 16 == 0,
      "quantize: on CUDA expected codes at a multiple of 16 bytes");
}

// The rotated numbers, where a block is too large for one thread block. Freed
// when the kernels are queued: the allocator reuses it on this stream only.
at::Tensor room_for(const kernels::BlockCoding& c, const at::Tensor& like) {
  return c.log_size <= kernels::kTileLog
             ? at::Tensor()
             : at::empty({c.blocks << c.log_size}, like.options());
}

}  // namespace

void block_norms_cuda(
    const at::Tensor& u,
    int log_size,
    const at::Tensor& norms) {
  const c10::cuda::CUDAGuard guard(u.device());
  ABT_CUDA_CHECK(kernels::block_norms(
      u.const_data_ptr<float>(),
      u.numel(),
      norms.numel(),
      log_size,
      norms.mutable_data_ptr<float>(),
      current_stream()));
}

void quantize_blocks_cuda(kernels::Quantize job, const at::Tensor& u) {
  const c10::cuda::CUDAGuard guard(u.device());
  check_alignment(job.codes);
  const at::Tensor room = room_for(job.coding, u);
  job.room = room.defined() ? room.mutable_data_ptr<float>() : nullptr;
  ABT_CUDA_CHECK(kernels::quantize_blocks(job, current_stream()));
}

void dequantize_blocks_cuda(kernels::Dequantize job, const at::Tensor& out) {
  const c10::cuda::CUDAGuard guard(out.device());
  check_alignment(job.codes);
  const at::Tensor room = room_for(job.coding, out);
  job.room = room.defined() ? room.mutable_data_ptr<float>() : nullptr;
  ABT_CUDA_CHECK(kernels::dequantize_blocks(job, current_stream()));
}

void sum_codes_cuda(const at::Tensor& in, int members, const at::Tensor& out) {
  const c10::cuda::CUDAGuard guard(in.device());
  const at::Tensor partial =
      at::empty({kernels::kPartials}, in.options().dtype(at::kInt));
  kernels::SumCodes job;
  job.in = in.const_data_ptr<std::uint8_t>();
  job.out = out.mutable_data_ptr<std::uint8_t>();
  job.bytes = out.numel() - kernels::kTailBytes;
  job.members = members;
  job.partial = static_cast<std::uint32_t*>(partial.mutable_data_ptr());
  check_alignment(job.in);
  check_alignment(job.out);
  ABT_CUDA_CHECK(kernels::sum_codes(job, current_stream()));
}

void update_scale_cuda(
    const kernels::UpdateScale& job,
    const at::Tensor& scale) {
  const c10::cuda::CUDAGuard guard(scale.device());
  check_alignment(job.codes);
  ABT_CUDA_CHECK(kernels::update_scale(job, current_stream()));
}

}  // namespace abtrain::ops
