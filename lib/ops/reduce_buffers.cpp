#include "ops/reduce_buffers.h"

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

#include <optional>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/cpu/reduce_buffers.h"
#include "ops/launch.h"

namespace abtrain::ops {

namespace {

void check(
    at::ArrayRef<at::Tensor> buffers, std::int64_t begin, std::int64_t count,
    const at::Tensor& first) {
  for (const at::Tensor& buffer : buffers) {
    ABT_ASSERT(
        buffer.dim() == 1 && buffer.is_contiguous() &&
            buffer.scalar_type() == first.scalar_type() && buffer.device() == first.device(),
        "reduce_buffers: expected flat {} buffers on {}, got {} {} on {}", first.scalar_type(),
        first.device(), buffer.scalar_type(), buffer.sizes(), buffer.device());
    ABT_ASSERT(
        begin >= 0 && count >= 0 && begin + count <= buffer.numel(),
        "reduce_buffers: range {}+{} is outside a buffer of {}", begin, count, buffer.numel());
  }
}

kernels::BufferList list_of(at::ArrayRef<at::Tensor> buffers, std::int64_t begin) {
  ABT_ASSERT(
      buffers.size() <= kernels::kMaxBuffers, "reduce_buffers: at most {} buffers on CUDA, got {}",
      kernels::kMaxBuffers, buffers.size());
  kernels::BufferList list;
  for (const at::Tensor& buffer : buffers) {
    list.data[list.count++] = static_cast<char*>(buffer.mutable_data_ptr()) +
                              begin * static_cast<std::int64_t>(buffer.element_size());
  }
  return list;
}

// Empty for a dtype that the kernel does not support.
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

// Tensors of fp64 and int64 hold counters and hashes. They are small, so LibTorch's kernels will
// do.
void reduce_rare(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op) {
  const auto wide = in.front().is_floating_point() ? at::kDouble : at::kLong;
  at::Tensor sum = in.front().narrow(0, begin, count).to(wide);
  for (const at::Tensor& buffer : in.slice(1)) {
    const at::Tensor next = buffer.narrow(0, begin, count).to(wide);
    sum = op == ReduceOp::Max ? at::maximum(sum, next) : at::add(sum, next);
  }
  if (op == ReduceOp::Mean) {
    // Divides by a tensor: for a plain number, LibTorch multiplies by its inverse.
    sum = at::div(sum, at::full({1}, static_cast<double>(in.size()), sum.options()));
  }
  for (const at::Tensor& buffer : out) {
    buffer.narrow(0, out_begin, count).copy_(sum);
  }
}

}  // namespace

void reduce_buffers(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op) {
  ABT_ASSERT(!in.empty(), "reduce_buffers: expected at least one input");
  const at::Tensor& first = in.front();
  check(in, begin, count, first);
  check(out, out_begin, count, first);
  ABT_ASSERT(
      op != ReduceOp::Mean || first.is_floating_point(),
      "reduce_buffers: a mean of {} is not defined", first.scalar_type());
  if (count == 0) {
    return;
  }
  const auto element = element_of(first.scalar_type());
  if (!takes_kernels(first.device())) {
    reduce_buffers_cpu(in, begin, count, out, out_begin, op);
  } else if (!element) {
    reduce_rare(in, begin, count, out, out_begin, op);
  } else {
    launch("reduce_buffers", first.device(), [&](void* stream) {
      return kernels::reduce_buffers(
          list_of(in, begin), list_of(out, out_begin), count, *element, op, stream);
    });
  }
}

}  // namespace abtrain::ops
