// Writes a safetensors file one tensor after the other, before it is known how
// many will come and how large they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/files.h"
#include "state/safetensors_header.h"

namespace abtrain::weights {

// Tensors lie in the file by the width of their elements, widest first, and
// otherwise in the order in which they were added: PyTorch reads no tensor that
// begins between two elements of its own, and the format allows no gaps. Throws
// Error(Io).
class SafetensorsStream {
 public:
  explicit SafetensorsStream(std::string path);

  // Adds a float tensor on the CPU, in its dtype.
  void add(const std::string& name, const at::Tensor& tensor);
  // Adds a tensor with the name, dtype, sizes and number of bytes of `tensor`;
  // `body` writes the bytes.
  void add(const state::StoredTensor& tensor, const std::function<void(const WritePiece&)>& body);
  // Writes the file next to its place and renames it. Returns its bytes.
  std::uint64_t finish(const std::map<std::string, std::string>& metadata);

 private:
  struct Section {
    std::vector<state::StoredTensor> tensors;
    std::unique_ptr<SpoolFile> bytes;
  };

  std::string path_;
  std::array<Section, 4> sections_;  // elements of 8, 4, 2 and 1 bytes
};

// Orders the tensors as a stream does, and sets their offsets.
void lay_out(state::SafetensorsHeader& header);

}  // namespace abtrain::weights
