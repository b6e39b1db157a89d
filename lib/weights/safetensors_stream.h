// A safetensors file written one tensor after the other, before it is known how
// many come and how large they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/files.h"
#include "weights/safetensors_header.h"

namespace abtrain::weights {

// Tensors lie in the file by the size of their elements, largest first, as they
// were added otherwise: PyTorch reads no tensor that begins between two
// elements of its own, and the format knows no gaps. Throws Error(Io).
class SafetensorsStream {
 public:
  explicit SafetensorsStream(std::string path);

  // A float tensor on the CPU, in its dtype.
  void add(const std::string& name, const at::Tensor& tensor);
  // Like `tensor` in name, dtype, sizes and number of bytes, which `body`
  // writes.
  void add(
      const StoredTensor& tensor,
      const std::function<void(const WritePiece&)>& body);
  // Writes the file beside its place and renames it. Returns its bytes.
  std::uint64_t finish(const std::map<std::string, std::string>& metadata);

 private:
  struct Section {
    std::vector<StoredTensor> tensors;
    std::unique_ptr<SpoolFile> bytes;
  };

  std::string path_;
  std::array<Section, 4> sections_;  // elements of 8, 4, 2 bytes and of 1
};

// Moves the tensors to where a stream puts them: order and offsets.
void lay_out(SafetensorsHeader& header);

}  // namespace abtrain::weights
