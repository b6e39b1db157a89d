#include "ops/launch.h"

#include <stdexcept>

#include "base/text.h"

namespace abtrain::ops {

void launch(const char* op, c10::Device device, c10::function_ref<int(void* stream)> kernel) {
  if (!emulates_kernels) {
    launch_on_gpu(op, device, kernel);
  } else if (const int status = kernel(nullptr)) {
    throw std::runtime_error(formatted("{}: the emulated kernel's status is {}", op, status));
  }
}

}  // namespace abtrain::ops
