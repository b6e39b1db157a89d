// A data set held on a device as bytes. Batches are made there, and the host sends only indices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "data/dataset.h"

namespace abtrain::data {

// All tensors are on one device; undefined if there are no images.
struct DeviceImages : ByteImages {
  at::Tensor table = {};  // C x 256, float32: normalized_bytes()
  std::int64_t size() const {
    return labels.defined() ? labels.size(0) : 0;
  }
};

// (byte / 255 - mean) / std for each channel and byte: C x 256, on the CPU.
at::Tensor normalized_bytes(const std::vector<float>& mean, const std::vector<float>& std);

struct DeviceDataset {
  c10::Device device;
  DeviceImages train, validation, test;
};

// One copy per device, shared by all workers that compute there. Safe to use
// from several threads.
class DeviceCopies {
 public:
  // Both arguments must hold their images as bytes in memory, and must outlive this object.
  DeviceCopies(const Dataset& dataset, const Examples& validation);
  DeviceCopies(Dataset&&, const Examples&) = delete;
  DeviceCopies(const Dataset&, Examples&&) = delete;
  // Returns the copy on `device`, complete; the first call makes it. It lives as long as this
  // object.
  const DeviceDataset& on(c10::Device device);

 private:
  const Dataset& dataset_;
  const Examples& validation_;
  std::mutex mutex_;
  std::list<DeviceDataset> copies_;
};

// Bytes per copy; 0 for image files and for images that are not bytes.
std::int64_t device_bytes(const Dataset& dataset, const Examples& validation);

}  // namespace abtrain::data
