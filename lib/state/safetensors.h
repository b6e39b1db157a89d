// Files of named tensors (github.com/huggingface/safetensors): an 8-byte
// little-endian header length, a JSON header, and the raw tensors row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "state/safetensors_header.h"

namespace abtrain::state {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Writes the tensors in the order in which they are given. Tensors of int32, int64, Half and
// BFloat16 keep their dtype; all others are converted to F32. The file is written under a temporary
// name and then renamed. `watch` is called with each piece of the file, in order. Returns the size
// of the file in bytes. Throws Error(Io).
std::uint64_t write_safetensors(
    const std::string& path, const std::vector<NamedTensor>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(std::string_view)>& watch = {});

// Parses the header of a file; each tensor is read from disk on request. Throws
// Error(MissingInput), and Error(DamagedData) naming a tensor that is missing or has another shape
// than expected. The constructor makes the same checks as Python's safetensors: each tensor has the
// bytes of its shape, and together they fill the file without gap or overlap.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const {
    return file_.path();
  }
  bool has(const std::string& name) const {
    return places_.contains(name);
  }
  // Removes `prefix` from all tensors' names, which must begin with it, and from "shape:NAME" in
  // the metadata.
  void strip(const std::string& prefix);
  // In the file's order.
  std::vector<std::string> names() const;
  const std::vector<StoredTensor>& tensors() const {
    return header_.tensors;
  }
  // Returns an fp32 tensor on the CPU; the file may hold F32, F64, F16 or BF16.
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  // Returns an int32 tensor on the CPU; the file must hold I32.
  at::Tensor read_integers(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  // True if the tensor `name` of the file has the values of `tensor`. Floating-point values may
  // differ as if the file held them in half precision; other values must be equal. The dtypes may
  // differ.
  bool holds(const std::string& name, const at::Tensor& tensor) const;
  std::vector<std::int64_t> shape(const std::string& name) const;
  // An entry of the metadata; "" if there is none.
  std::string metadata(const std::string& key) const;
  const std::map<std::string, std::string>& metadata() const {
    return header_.metadata;
  }
  // The second dimension of a 2-D tensor.
  std::int64_t columns(const std::string& name) const;

  // Reads one of tensors() in its own dtype, which must be a float_type().
  at::Tensor load(const StoredTensor& tensor) const;
  // The file offset from which StoredTensor::begin and end count.
  std::uint64_t data_begin() const {
    return begin_;
  }
  // Passes the bytes of one of tensors() to `write`, whatever the dtype.
  void copy(const StoredTensor& tensor, const WritePiece& write) const;

 private:
  std::uint64_t data_bytes() const {
    return file_.size() - begin_;
  }
  template <class... T>
  void check(bool ok, fmt::format_string<T...> text, const T&... parts) const {
    ABT_CHECK(
        ok, DamagedData, "{}: damaged safetensors file: {}", path(), formatted(text, parts...));
  }
  template <class... T>
  void check_fit(bool ok, fmt::format_string<T...> text, const T&... parts) const {
    ABT_CHECK(ok, DamagedData, "{} does not fit the model: {}", path(), formatted(text, parts...));
  }
  void check_layout() const;
  const StoredTensor& find(const std::string& name, const std::vector<std::int64_t>& sizes) const;
  at::Tensor load_as(const StoredTensor& tensor, at::ScalarType type) const;

  InputFile file_;
  std::uint64_t begin_ = 0;  // the file offset where the tensors begin
  SafetensorsHeader header_;
  std::unordered_map<std::string, std::size_t> places_;  // indices into header_.tensors, by name
};

}  // namespace abtrain::state
