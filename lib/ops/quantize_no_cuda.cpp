#include "base/error.h"
#include "ops/quantize_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse() {
  ABT_ASSERT(false, "quantize: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace

void block_norms_cuda(const at::Tensor&, int, const at::Tensor&) {
  refuse();
}
void quantize_blocks_cuda(kernels::Quantize, const at::Tensor&) {
  refuse();
}
void dequantize_blocks_cuda(kernels::Dequantize, const at::Tensor&) {
  refuse();
}
void sum_codes_cuda(const at::Tensor&, int, const at::Tensor&) {
  refuse();
}
void update_scale_cuda(const kernels::UpdateScale&, const at::Tensor&) {
  refuse();
}

}  // namespace abtrain::ops
