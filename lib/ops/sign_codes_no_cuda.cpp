#include "base/error.h"
#include "ops/sign_codes_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse() {
  ABT_ASSERT(
      false, "sign codes: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
  __builtin_unreachable();
}

}  // namespace

void encode_signs_cuda(const kernels::EncodeSigns&, c10::Device) {
  refuse();
}
void serve_signs_cuda(const kernels::ServeSigns&, c10::Device) {
  refuse();
}
void decode_signs_cuda(const kernels::DecodeSigns&, c10::Device) {
  refuse();
}

}  // namespace abtrain::ops
