// The header of a safetensors file: the position of each tensor.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain::state {

// "64,3,3,3"
std::string shape_text(const std::vector<std::int64_t>& sizes);

struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32", "I64", ...; may be unknown to abtrain
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0;  // in bytes from the end of the header
  std::uint64_t end = 0;

  std::uint64_t bytes() const {
    return end - begin;
  }
  std::int64_t numel() const;
};

// Bytes per element; 0 for an unknown dtype.
std::uint64_t element_bytes(std::string_view dtype);
// LibTorch's type; empty for a dtype that abtrain does not know or use.
std::optional<at::ScalarType> type_of(std::string_view dtype);
// LibTorch's type for F32, F64, F16 and BF16; empty for any other dtype.
std::optional<at::ScalarType> float_type(std::string_view dtype);
// The name of LibTorch's type in a file, such as "F32".
std::string dtype_name(at::ScalarType type);
// The same for the option value fp32, fp16 or bf16.
std::string stored_dtype(const std::string& option);

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the file's order
  std::map<std::string, std::string> metadata;
};

// Parses the JSON text of a header. Throws Error(DamagedData), naming `path` and the tensor, if an
// entry is malformed or occurs twice. Does not check that the file contains the tensors' bytes.
SafetensorsHeader parse_header(std::string_view text, const std::string& path);

// The bytes before the first tensor: the length, the JSON, and spaces so that
// tensors begin aligned.
std::string header_bytes(const SafetensorsHeader& header);

}  // namespace abtrain::state
