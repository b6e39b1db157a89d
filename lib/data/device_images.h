// A data set that lies on a device as bytes: batches are made there, and the
// host sends indices alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "data/dataset.h"

namespace abtrain::data {

// All on one device; undefined where there are no images.
struct DeviceImages {
  at::Tensor pixels = {};  // N x C x H x W, uint8
  at::Tensor labels = {};  // N, int64
  at::Tensor table = {};   // C x 256, float32: normalised_bytes()
  std::int64_t size() const {
    return labels.defined() ? labels.size(0) : 0;
  }
};

// (byte / 255 - mean) / std of each byte, a channel: C x 256, on the CPU.
at::Tensor normalised_bytes(
    const std::vector<float>& mean,
    const std::vector<float>& std);

struct DeviceDataset {
  c10::Device device;
  DeviceImages train, validation, test;
};

// One copy a device, shared by all workers that compute there. Safe to use from
// several threads.
class DeviceCopies {
 public:
  // Of images in memory, which must outlive it (not of files).
  DeviceCopies(const Dataset& dataset, const Images& validation);
  // Made by the first who asks and complete on return; lives as long as this.
  const DeviceDataset& on(c10::Device device);

 private:
  const Dataset& dataset_;
  const Images& validation_;
  std::mutex mutex_;
  std::list<DeviceDataset> copies_;
};

// What a copy takes; 0 for a set of files, and for images that are no bytes.
std::int64_t device_bytes(const Dataset& dataset, const Images& validation);

}  // namespace abtrain::data
