#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "device/cuda/check.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/stream.h"

namespace abtrain::device {

namespace {

std::string describe(int status, const char* call) {
  const auto error = static_cast<cudaError_t>(status);
  return formatted("{}: {}: {}", call, cudaGetErrorName(error), cudaGetErrorString(error));
}

}  // namespace

void throw_cuda_error(int status, const char* call) {
  throw std::runtime_error(describe(status, call));
}

void warn_cuda_error(int status, const char* call) noexcept {
  std::fprintf(stderr, "warning: CUDA error %d in %s\n", status, call);
}

std::vector<DeviceInfo> cuda_devices() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<DeviceInfo> devices;
  // Returns 0 and does not throw if there is no driver.
  const int count = c10::cuda::device_count();
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    ABT_CUDA_CHECK(cudaGetDeviceProperties(&properties, i));
    devices.push_back(
        {c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(i)), properties.name,
         static_cast<std::int64_t>(properties.totalGlobalMem),
         properties.major >= 8 ? "tensor cores" : ""});
    for (const char byte : properties.uuid.bytes) {
      devices.back().id += kDigits[(byte >> 4) & 15];
      devices.back().id += kDigits[byte & 15];
    }
  }
  return devices;
}

struct Event::Impl {
  c10::DeviceIndex device = 0;
  cudaEvent_t event = nullptr;

  explicit Impl(c10::DeviceIndex index) : device(index) {
    const c10::cuda::CUDAGuard guard(device);
    ABT_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    ABT_CUDA_WARN(cudaEventDestroy(event));
  }
};

Event::Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

Event Event::record(c10::Device device) {
  Event result;
  if (device.is_cuda()) {
    const auto stream = c10::cuda::getCurrentCUDAStream(device.index());
    result.impl_ = std::make_unique<Impl>(stream.device_index());
    const c10::cuda::CUDAGuard guard(stream.device_index());
    ABT_CUDA_CHECK(cudaEventRecord(result.impl_->event, stream.stream()));
  }
  return result;
}

void Event::order_after() const {
  if (impl_) {
    const c10::cuda::CUDAGuard guard(impl_->device);
    ABT_CUDA_CHECK(cudaStreamWaitEvent(
        c10::cuda::getCurrentCUDAStream(impl_->device).stream(), impl_->event, 0));
  }
}

void Event::wait() const {
  if (impl_) {
    ABT_CUDA_CHECK(cudaEventSynchronize(impl_->event));
  }
}

// Not one of LibTorch's pool, which hands out 32 in turn: waiting for a shared stream would break
// another worker's capture.
struct OwnStream::Impl {
  // Never destroyed: LibTorch keeps memory that only this stream may use again.
  cudaStream_t stream = nullptr;
  std::optional<c10::cuda::CUDAStreamGuard> guard;

  explicit Impl(c10::DeviceIndex device) {
    const c10::cuda::CUDAGuard on_device(device);
    ABT_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    guard.emplace(c10::cuda::getStreamFromExternal(stream, device));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

OwnStream::OwnStream(c10::Device device) {
  if (device.is_cuda()) {
    // This stream must see what the default stream has prepared (the initial
    // model).
    const Event before = Event::record(device);
    impl_ = std::make_unique<Impl>(c10::cuda::getCurrentCUDAStream(device.index()).device_index());
    before.order_after();
  }
}
OwnStream::~OwnStream() = default;

void synchronize(c10::Device device) {
  if (device.is_cuda()) {
    c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
  }
}

at::Generator make_generator(c10::Device device) {
  return device.is_cuda() ? at::cuda::detail::createCUDAGenerator(device.index())
                          : at::detail::createCPUGenerator();
}

}  // namespace abtrain::device
