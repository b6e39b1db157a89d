#include "weights/safetensors_stream.h"

#include <algorithm>

#include "base/error.h"

namespace abtrain::weights {

namespace {

// The last section also takes dtypes that we do not know: they need no alignment
// known to us.
std::ptrdiff_t section_index(const std::string& dtype) {
  constexpr std::array<std::uint64_t, 3> kWidths = {8, 4, 2};
  return std::ranges::find(kWidths, state::element_bytes(dtype)) - kWidths.begin();
}

}  // namespace

void lay_out(state::SafetensorsHeader& header) {
  std::ranges::stable_sort(
      header.tensors, {}, [](const state::StoredTensor& t) { return section_index(t.dtype); });
  std::uint64_t begin = 0;
  for (state::StoredTensor& tensor : header.tensors) {
    tensor.end = begin + tensor.bytes();
    tensor.begin = begin;
    begin = tensor.end;
  }
}

SafetensorsStream::SafetensorsStream(std::string path) : path_(std::move(path)) {
  // Anything that keeps the folder from taking files shows before the work.
  for (Section& section : sections_) {
    section.bytes = std::make_unique<SpoolFile>(path_);
  }
}

void SafetensorsStream::add(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  add({name, state::dtype_name(whole.scalar_type()), whole.sizes().vec(), 0, whole.nbytes()},
      [&](const WritePiece& write) {
        write({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
      });
}

void SafetensorsStream::add(
    const state::StoredTensor& tensor, const std::function<void(const WritePiece&)>& body) {
  Section& section = sections_[static_cast<std::size_t>(section_index(tensor.dtype))];
  const std::uint64_t before = section.bytes->size();
  body([&](std::string_view piece) { section.bytes->write(piece); });
  ABT_ASSERT(
      section.bytes->size() - before == tensor.bytes(),
      "tensor '{}' does not have the announced number of bytes", tensor.name);
  section.tensors.push_back(tensor);
}

std::uint64_t SafetensorsStream::finish(const std::map<std::string, std::string>& metadata) {
  state::SafetensorsHeader header{{}, metadata};
  for (const Section& section : sections_) {
    header.tensors.insert(header.tensors.end(), section.tensors.begin(), section.tensors.end());
  }
  lay_out(header);
  const std::string begin = state::header_bytes(header);
  std::uint64_t bytes = begin.size();
  atomic_write(path_, [&](const WritePiece& write) {
    write(begin);
    for (const Section& section : sections_) {
      section.bytes->copy_to(write);
      bytes += section.bytes->size();
    }
  });
  return bytes;
}

}  // namespace abtrain::weights
