// Files of named tensors (github.com/huggingface/safetensors): an 8-byte
// little-endian header length, a JSON header, and the raw tensors row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "state/safetensors_header.h"

namespace abtrain::state {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Writes the tensors in this order: int32, Half and BFloat16 as they are, all
// others as F32. The file is written next to its place and then renamed.
// `watch` is shown every piece of the file in turn. Returns the bytes of the
// file. Throws Error(Io).
std::uint64_t write_safetensors(
    const std::string& path, const std::vector<NamedTensor>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(std::string_view)>& watch = {});

// A file whose header is parsed; a tensor is read from disk when it is asked
// for. Throws MissingInput, or DamagedData naming the tensor that is missing or
// has another shape. The constructor checks what Python's safetensors also
// insists on: that each tensor has the bytes of its shape, and that together
// they fill the file without gap or overlap.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const;
  bool has(const std::string& name) const;
  // Names of all tensors, in the file's order.
  std::vector<std::string> names() const;
  const std::vector<StoredTensor>& tensors() const;
  // An fp32 tensor on the CPU, from F32, F64, F16 or BF16.
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  // An int32 tensor on the CPU, from I32.
  at::Tensor read_integers(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  std::vector<std::int64_t> shape(const std::string& name) const;
  // An entry of the metadata; "" if there is none.
  std::string metadata(const std::string& key) const;
  const std::map<std::string, std::string>& metadata() const;
  // The second dimension of a 2-D tensor.
  std::int64_t columns(const std::string& name) const;

  // Reads one of tensors() in its own dtype, which must be a float_type().
  at::Tensor load(const StoredTensor& tensor) const;
  // Byte of the file from which StoredTensor::begin and end count.
  std::uint64_t data_begin() const;
  // Passes the bytes of one of tensors() to `write`, whatever the dtype.
  void copy(const StoredTensor& tensor, const WritePiece& write) const;

 private:
  struct State;
  const StoredTensor& find(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  at::Tensor load_as(const StoredTensor& tensor, at::ScalarType type) const;
  std::shared_ptr<State> state_;  // copies read the same open file
};

}  // namespace abtrain::state
