#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <stdexcept>

#include "base/text.h"
#include "device/cuda/check.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/stream.h"

namespace abtrain::device {

void throw_cuda_error(int status, const char* call) {
  const auto error = static_cast<cudaError_t>(status);
  throw std::runtime_error(
      formatted("{}: {}: {}", call, cudaGetErrorName(error), cudaGetErrorString(error)));
}

std::vector<DeviceInfo> cuda_devices() {
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
      devices.back().id += formatted("{:02x}", byte & 0xFF);
    }
  }
  return devices;
}

OwnStream::OwnStream(c10::Device device) {
  if (device.is_cuda()) {
    // Work on the new stream starts after what the current stream has prepared (the initial model).
    const Event before = Event::record(device);
    const auto index = c10::cuda::getCurrentCUDAStream(device.index()).device_index();
    const c10::cuda::CUDAGuard on_device(index);
    // The stream is not from LibTorch's pool, which hands out 32 streams in turn: waiting for a
    // shared stream would break another worker's capture. It is never destroyed: LibTorch keeps
    // memory that only this stream may use again.
    cudaStream_t stream = nullptr;
    ABT_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    guard_.reset_stream(c10::cuda::getStreamFromExternal(stream, index));
    before.order_after();
  }
}

at::Generator make_generator(c10::Device device) {
  return device.is_cuda() ? at::cuda::detail::createCUDAGenerator(device.index())
                          : at::detail::createCPUGenerator();
}

}  // namespace abtrain::device
