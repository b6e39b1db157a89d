// Files of arrays, for tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>

#include "state/safetensors_header.h"

namespace abtrain::data {

inline std::string raw(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// As abtrain.save_arrays writes it, but x comes first.
inline std::string arrays_file(
    const at::Tensor& x, const at::Tensor& y,
    const std::map<std::string, std::string>& metadata = {}) {
  static const std::map<at::ScalarType, std::string> kNames = {
      {at::kByte, "U8"},   {at::kInt, "I32"},       {at::kLong, "I64"},   {at::kHalf, "F16"},
      {at::kFloat, "F32"}, {at::kBFloat16, "BF16"}, {at::kDouble, "F64"}, {at::kUInt16, "U16"}};
  state::SafetensorsHeader header{{}, metadata};
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : {std::pair{"x", x}, std::pair{"y", y}}) {
    header.tensors.push_back(
        {name, kNames.at(tensor.scalar_type()), tensor.sizes().vec(), begin,
         begin + tensor.nbytes()});
    begin += tensor.nbytes();
  }
  return state::header_bytes(header) + raw(x) + raw(y);
}

}  // namespace abtrain::data
