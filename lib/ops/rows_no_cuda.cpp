#include "base/error.h"
#include "ops/rows_backends.h"

namespace abtrain::ops {

namespace {

[[noreturn]] void refuse() {
  ABT_ASSERT(false, "rows: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
  __builtin_unreachable();
}

}  // namespace

void row_norms_cuda(const kernels::RowNorms&, c10::Device) {
  refuse();
}
void choose_rows_cuda(const kernels::ChooseRows&, c10::Device) {
  refuse();
}
void send_rows_cuda(const kernels::SendRows&, c10::Device) {
  refuse();
}
void add_rows_cuda(const kernels::AddRows&, c10::Device) {
  refuse();
}

}  // namespace abtrain::ops
