#include "device/tune.h"

#include <ATen/Context.h>

namespace abtrain::device {

void tune(c10::Device device) {
  if (device.is_cuda()) {
    at::globalContext().setBenchmarkCuDNN(true);
  }
}

}  // namespace abtrain::device
