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

void sizes_cuda(const kernels::Sizes&, c10::Device) {
  refuse();
}
void encode_above_cuda(const kernels::EncodeAbove&, c10::Device) {
  refuse();
}
void encode_by_chance_cuda(const kernels::EncodeByChance&, c10::Device) {
  refuse();
}
void subtract_levels_cuda(const kernels::SubtractLevels&, c10::Device) {
  refuse();
}
void average_levels_cuda(const kernels::AverageLevels&, c10::Device) {
  refuse();
}
void average_byte_levels_cuda(const kernels::AverageByteLevels&, c10::Device) {
  refuse();
}

}  // namespace abtrain::ops
