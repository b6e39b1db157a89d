#include "ops/reduce_buffers.h"

#include "base/error.h"
#include "ops/reduce_buffers_backends.h"

namespace abtrain::ops {

namespace {

void check(
    at::ArrayRef<at::Tensor> buffers,
    std::int64_t begin,
    std::int64_t count,
    const at::Tensor& first) {
  for (const at::Tensor& buffer : buffers) {
    ABT_ASSERT(
        buffer.dim() == 1 && buffer.is_contiguous() &&
            buffer.scalar_type() == first.scalar_type() &&
            buffer.device() == first.device(),
        "reduce_buffers: expected flat ",
        first.scalar_type(),
        " buffers on ",
        first.device(),
        ", got ",
        buffer.scalar_type(),
        " ",
        buffer.sizes(),
        " on ",
        buffer.device());
    ABT_ASSERT(
        begin >= 0 && count >= 0 && begin + count <= buffer.numel(),
        "reduce_buffers: range ",
        begin,
        "+",
        count,
        " is outside a buffer of ",
        buffer.numel());
  }
}

}  // namespace

void reduce_buffers(
    at::ArrayRef<at::Tensor> in,
    std::int64_t begin,
    std::int64_t count,
    at::ArrayRef<at::Tensor> out,
    std::int64_t out_begin,
    ReduceOp op) {
  ABT_ASSERT(!in.empty(), "reduce_buffers: no input");
  const at::Tensor& first = in.front();
  check(in, begin, count, first);
  check(out, out_begin, count, first);
  ABT_ASSERT(
      op != ReduceOp::Mean || first.is_floating_point(),
      "reduce_buffers: a mean of ",
      first.scalar_type(),
      " is not defined");
  if (count == 0) {
    return;
  }
  if (first.is_cuda()) {
    reduce_buffers_cuda(in, begin, count, out, out_begin, op);
  } else {
    reduce_buffers_cpu(in, begin, count, out, out_begin, op);
  }
}

}  // namespace abtrain::ops
