// The two forms of hadamard behind its dispatch; arguments are checked.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void hadamard_cpu(const at::Tensor& x, int log_size);

void hadamard_cuda(const at::Tensor& x, int log_size);

}  // namespace abtrain::ops
