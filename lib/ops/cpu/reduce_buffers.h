// The CPU implementation of ops/reduce_buffers.h. The caller has checked the arguments.
#pragma once

#include "ops/reduce_buffers.h"

namespace abtrain::ops {

void reduce_buffers_cpu(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op);

}  // namespace abtrain::ops
