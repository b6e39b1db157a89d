#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>

#include "base/text.h"
#include "device/cuda_check.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/stream.h"

namespace abtrain::device {

void throw_cuda_error(int status, const char* call) {
  throw std::runtime_error(str(
      call, ": CUDA error ", status, " in a build made with ABTRAIN_CUDA=OFF"));
}

void warn_cuda_error(int, const char*) noexcept {}

std::vector<DeviceInfo> cuda_devices() {
  return {};
}

struct Event::Impl {};
Event::Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;
Event Event::record(c10::Device) {
  return {};
}
void Event::order_after() const {}
void Event::wait() const {}

struct OwnStream::Impl {};
OwnStream::OwnStream(c10::Device) {}
OwnStream::~OwnStream() = default;

void synchronize(c10::Device) {}

at::Generator make_generator(c10::Device) {
  return at::detail::createCPUGenerator();
}

}  // namespace abtrain::device
