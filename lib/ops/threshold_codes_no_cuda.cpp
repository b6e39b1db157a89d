#include "base/error.h"
#include "ops/threshold_codes_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse() {
  ABT_ASSERT(
      false, "threshold codes: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
  __builtin_unreachable();
}

}  // namespace

void moments_cuda(const kernels::Moments&, c10::Device) {
  refuse();
}
void encode_threshold_cuda(const kernels::EncodeThreshold&, c10::Device) {
  refuse();
}
void average_codes_cuda(const kernels::AverageCodes&, c10::Device) {
  refuse();
}
void pack_sums_cuda(const kernels::PackSums&, c10::Device) {
  refuse();
}
void unpack_sums_cuda(const kernels::UnpackSums&, c10::Device) {
  refuse();
}

}  // namespace abtrain::ops
