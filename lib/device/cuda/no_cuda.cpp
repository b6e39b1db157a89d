#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>

#include "base/text.h"
#include "device/cuda/check.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/graph.h"
#include "device/stream.h"

namespace abtrain::device {

void throw_cuda_error(int status, const char* call) {
  throw std::runtime_error(
      formatted("{}: CUDA error {} in a build with ABTRAIN_CUDA=OFF", call, status));
}

std::vector<DeviceInfo> cuda_devices() {
  return {};
}

OwnStream::OwnStream(c10::Device) {}

at::Generator make_generator(c10::Device) {
  return at::detail::createCPUGenerator();
}

Graph Graph::capture(
    c10::Device, const std::function<void()>& body, const std::vector<at::Generator>&, CaptureTurn&,
    const Graph&) {
  Graph graph;
  graph.replay_ = body;
  return graph;
}

}  // namespace abtrain::device
