// What a worker's decompositions run on.
#pragma once

#include <optional>

#include "device/side_stream.h"
#include "linalg/exact_drivers.h"

namespace abtrain::methods {

// Made at the first decomposition, for the worker's device.
struct SvdTools {
  explicit SvdTools(c10::Device device) : stream(device) {
    if (device.is_cuda()) {
      drivers.emplace(device);
    }
  }

  device::SideStream stream;
  std::optional<linalg::ExactDrivers> drivers;  // on a GPU
};

}  // namespace abtrain::methods
