#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>

#include "base/text.h"
#include "device/cuda/check.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/graph.h"
#include "device/side_stream.h"
#include "device/span.h"
#include "device/stream.h"

namespace abtrain::device {

void throw_cuda_error(int status, const char* call) {
  throw std::runtime_error(
      formatted("{}: CUDA error {} in a build with ABTRAIN_CUDA=OFF", call, status));
}

std::vector<DeviceInfo> cuda_devices() {
  return {};
}

Event Event::record(c10::Device) {
  return {};
}
void Event::order_after() const {}
void Event::wait() const {}

OwnStream::OwnStream(c10::Device) {}

void synchronize(c10::Device) {}

at::Generator make_generator(c10::Device) {
  return at::detail::createCPUGenerator();
}

std::function<void()> Graph::capture_cuda(
    c10::Device, const std::function<void()>&, const std::vector<at::Generator>&, CaptureTurn&) {
  throw CaptureFailed("this build (ABTRAIN_CUDA=OFF) has no CUDA graphs");
}

SideStream::SideStream(c10::Device) {}

void SideStream::run(const std::function<void()>& body) {
  body();
}

void keep_for_current_stream(const at::Tensor&) {}

Span::Span(c10::Device) {}

void Span::end() {
  seconds_ = watch_.seconds();
}

std::optional<double> Span::seconds(bool) const {
  return seconds_;
}

}  // namespace abtrain::device
