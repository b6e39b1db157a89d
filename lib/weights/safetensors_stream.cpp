#include "weights/safetensors_stream.h"

#include <algorithm>

#include "base/error.h"

namespace abtrain::weights {

namespace {

// Puts tensors with elements of 8, 4 and 2 bytes first, in this order. 1-byte elements need no
// alignment, and for unknown dtypes none is known, so these come last.
void sort_by_width(std::vector<state::StoredTensor>& tensors) {
  std::ranges::stable_sort(tensors, {}, [](const state::StoredTensor& t) {
    constexpr std::uint64_t kWidths[] = {8, 4, 2};
    return std::ranges::find(kWidths, state::element_bytes(t.dtype)) - kWidths;
  });
}

}  // namespace

void lay_out(state::SafetensorsHeader& header) {
  sort_by_width(header.tensors);
  std::uint64_t begin = 0;
  for (state::StoredTensor& tensor : header.tensors) {
    tensor.end = begin + tensor.bytes();
    tensor.begin = begin;
    begin = tensor.end;
  }
}

// Throws here, before long work, if bytes_ cannot be created in the output's folder.
SafetensorsStream::SafetensorsStream(std::string path) : path_(std::move(path)), bytes_(path_) {}

void SafetensorsStream::add(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  add({name, state::dtype_name(whole.scalar_type()), whole.sizes().vec(), 0, whole.nbytes()},
      [&](const WritePiece& write) {
        write({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
      });
}

void SafetensorsStream::add(
    const state::StoredTensor& tensor, const std::function<void(const WritePiece&)>& body) {
  state::StoredTensor& added = tensors_.emplace_back(tensor);
  added.begin = bytes_.size();
  body([&](std::string_view piece) { bytes_.write(piece); });
  added.end = bytes_.size();
  ABT_ASSERT(
      added.end - added.begin == tensor.bytes(),
      "tensor '{}' does not have the announced number of bytes", tensor.name);
}

std::uint64_t SafetensorsStream::finish(const std::map<std::string, std::string>& metadata) {
  sort_by_width(tensors_);
  state::SafetensorsHeader header{tensors_, metadata};
  lay_out(header);
  const std::string begin = state::header_bytes(header);
  atomic_write(path_, [&](const WritePiece& write) {
    write(begin);
    for (const state::StoredTensor& tensor : tensors_) {
      bytes_.copy(tensor.begin, tensor.end, write);
    }
  });
  return begin.size() + bytes_.size();
}

}  // namespace abtrain::weights
