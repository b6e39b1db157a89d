#include <stdexcept>

#include "base/text.h"
#include "ops/launch.h"

namespace abtrain::ops {

void launch_on_gpu(const char* op, c10::Device, c10::function_ref<int(void* stream)>) {
  throw std::runtime_error(formatted("{}: CUDA tensors in a build made with ABTRAIN_CUDA=OFF", op));
}

}  // namespace abtrain::ops
