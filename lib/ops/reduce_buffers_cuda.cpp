#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/maximum.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

#include "base/error.h"
#include "device/cuda_check.h"
#include "kernels/reduce_buffers.h"
#include "ops/reduce_buffers_backends.h"

namespace abtrain::ops {

namespace {

kernels::BufferList list_of(
    at::ArrayRef<at::Tensor> buffers,
    std::int64_t begin) {
  ABT_ASSERT(
      buffers.size() <= kernels::kMaxBuffers,
      "reduce_buffers: at most ",
      kernels::kMaxBuffers,
      " buffers on CUDA, got ",
      buffers.size());
  kernels::BufferList list;
  for (const at::Tensor& buffer : buffers) {
    list.data[list.count++] =
        static_cast<char*>(buffer.mutable_data_ptr()) +
        begin * static_cast<std::int64_t>(buffer.element_size());
  }
  return list;
}

kernels::Combine combine_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return kernels::Combine::Sum;
    case ReduceOp::Mean:
      return kernels::Combine::Mean;
    case ReduceOp::Max:
      return kernels::Combine::Max;
  }
  ABT_ASSERT(false, "unknown reduction");
}

// Nothing for what the kernel has no form of.
std::optional<kernels::Element> element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return kernels::Element::F32;
    case at::kHalf:
      return kernels::Element::F16;
    case at::kBFloat16:
      return kernels::Element::BF16;
    case at::kByte:
      return kernels::Element::U8;
    case at::kInt:
      return kernels::Element::I32;
    default:
      return {};
  }
}

// fp64 and int64: counters and hashes, small enough for LibTorch's own kernels.
void reduce_rare(
    at::ArrayRef<at::Tensor> in,
    std::int64_t begin,
    std::int64_t count,
    at::ArrayRef<at::Tensor> out,
    std::int64_t out_begin,
    ReduceOp op) {
  const auto wide = in.front().is_floating_point() ? at::kDouble : at::kLong;
  at::Tensor sum = in.front().narrow(0, begin, count).to(wide);
  for (const at::Tensor& buffer : in.slice(1)) {
    const at::Tensor next = buffer.narrow(0, begin, count).to(wide);
    sum = op == ReduceOp::Max ? at::maximum(sum, next) : at::add(sum, next);
  }
  if (op == ReduceOp::Mean) {
    sum = at::div(sum, static_cast<double>(in.size()));
  }
  for (const at::Tensor& buffer : out) {
    buffer.narrow(0, out_begin, count).copy_(sum);
  }
}

}  // namespace

void reduce_buffers_cuda(
    at::ArrayRef<at::Tensor> in,
    std::int64_t begin,
    std::int64_t count,
    at::ArrayRef<at::Tensor> out,
    std::int64_t out_begin,
    ReduceOp op) {
  const c10::cuda::CUDAGuard guard(in.front().device());
  const auto element = element_of(in.front().scalar_type());
  if (!element) {
    reduce_rare(in, begin, count, out, out_begin, op);
    return;
  }
  ABT_CUDA_CHECK(kernels::reduce_buffers(
      list_of(in, begin),
      list_of(out, out_begin),
      count,
      *element,
      combine_of(op),
      c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
