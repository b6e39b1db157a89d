// Writes a safetensors file one tensor after the other; their number and sizes need not be known in
// advance.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "state/safetensors_header.h"

namespace abtrain::weights {

// Tensors are sorted in the file by element width, widest first, then by order of addition: PyTorch
// reads no tensor whose offset is not a multiple of its element size, and the format allows no
// gaps. Throws Error(Io).
class SafetensorsStream {
 public:
  explicit SafetensorsStream(std::string path);

  // Adds a float tensor on the CPU, in its dtype.
  void add(const std::string& name, const at::Tensor& tensor);
  // Adds a tensor with the name, dtype, sizes and number of bytes of `tensor`;
  // `body` writes the bytes.
  void add(const state::StoredTensor& tensor, const std::function<void(const WritePiece&)>& body);
  // Writes the file under a temporary name beside its place and renames it. Returns its size in
  // bytes.
  std::uint64_t finish(const std::map<std::string, std::string>& metadata);

 private:
  std::string path_;
  SpoolFile bytes_;
  std::vector<state::StoredTensor> tensors_;  // with begin and end as offsets in bytes_
};

// Orders the tensors as SafetensorsStream does, and sets their offsets.
void lay_out(state::SafetensorsHeader& header);

}  // namespace abtrain::weights
