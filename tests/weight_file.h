// Safetensors files made byte by byte, for tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <cstring>
#include <string>
#include <vector>

#include "error_of.h"
#include "state/safetensors.h"
#include "weights/safetensors_stream.h"

namespace abtrain::weights {

// A file of this header and these bytes, right or wrong.
inline std::string raw_file(const std::string& header, const std::string& data = "") {
  std::string begin(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(begin.data(), &length, 8);
  return begin + header + data;
}

inline void write_weights(
    const std::string& path, const std::vector<state::NamedTensor>& tensors,
    const std::map<std::string, std::string>& metadata = {}) {
  SafetensorsStream stream(path);
  for (const state::NamedTensor& t : tensors) {
    stream.add(t.name, t.tensor);
  }
  stream.finish(metadata);
}

inline at::Tensor normal(std::vector<std::int64_t> sizes, int seed = 1) {
  return at::randn(
      sizes, at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed)), at::kFloat);
}

}  // namespace abtrain::weights
