#include "base/error.h"
#include "ops/difference_codes_backends.h"

namespace abtrain::ops {

void encode_difference_cuda(const kernels::EncodeDifference&, c10::Device) {
  ABT_ASSERT(
      false,
      "encode_difference: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

void decode_differences_cuda(const kernels::DecodeDifferences&, c10::Device) {
  ABT_ASSERT(
      false,
      "decode_differences: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
