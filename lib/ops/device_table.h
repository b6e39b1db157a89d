// A table that the host fills and kernels read.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace abtrain::ops {

template <class T>
requires std::is_trivially_copyable_v<T>
class DeviceTable {
 public:
  std::vector<T> host;

  // Returns the table in memory that the device can read. The first call for a device other than
  // the CPU copies `host` there; `host` must not change afterwards.
  const T* on(c10::Device device) {
    if (device.is_cpu() || host.empty()) {
      return host.data();
    }
    if (!copy_.defined() || copy_.device() != device) {
      const auto bytes = static_cast<std::int64_t>(host.size() * sizeof(T));
      copy_ = at::from_blob(host.data(), {bytes}, at::kByte).to(device);
    }
    return static_cast<const T*>(copy_.const_data_ptr());
  }

 private:
  at::Tensor copy_;
};

}  // namespace abtrain::ops
