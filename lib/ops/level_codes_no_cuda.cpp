#include "base/error.h"
#include "ops/level_codes_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse() {
  ABT_ASSERT(
      false, "level codes: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
  __builtin_unreachable();
}

}  // namespace

void survivors_cuda(const kernels::Survivors&, c10::Device) {
  refuse();
}
void largest_cuda(const kernels::Largest&, c10::Device) {
  refuse();
}
void encode_levels_cuda(const kernels::EncodeLevels&, c10::Device) {
  refuse();
}
void average_levels_cuda(const kernels::AverageLevels&, c10::Device) {
  refuse();
}
void average_byte_levels_cuda(const kernels::AverageByteLevels&, c10::Device) {
  refuse();
}

}  // namespace abtrain::ops
