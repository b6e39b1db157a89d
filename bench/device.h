// The device that a benchmark's option --device names.
#pragma once

#include <map>
#include <string>

#include "device/devices.h"

namespace abtrain::bench {

// auto, cpu or cuda; throws std::out_of_range for another word.
inline c10::Device device_of(const std::string& word) {
  const std::map<std::string, device::DeviceChoice> choices = {
      {"auto", device::DeviceChoice::Auto},
      {"cpu", device::DeviceChoice::Cpu},
      {"cuda", device::DeviceChoice::Cuda}};
  return device::pick_device(choices.at(word));
}

}  // namespace abtrain::bench
