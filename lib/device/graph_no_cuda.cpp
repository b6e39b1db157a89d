#include "device/graph.h"

namespace abtrain::device {

std::unique_ptr<Graph::Form> Graph::capture_cuda(
    c10::Device,
    const std::function<void()>&,
    const std::vector<at::Generator>&,
    CaptureTurn&) {
  throw CaptureFailed("a CUDA graph in a build made with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::device
