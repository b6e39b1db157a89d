#include "state/safetensors.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"

namespace abtrain::state {

namespace {

// The limit of the reference implementation.
constexpr std::uint64_t kLargestHeader = 100'000'000;

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::ScalarType stored_type(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  constexpr at::ScalarType kStays[] = {at::kInt, at::kLong, at::kHalf, at::kBFloat16};
  return std::ranges::count(kStays, type) > 0 ? type : at::kFloat;
}

}  // namespace

std::uint64_t write_safetensors(
    const std::string& path, const std::vector<NamedTensor>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(std::string_view)>& watch) {
  SafetensorsHeader header{{}, metadata};
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const at::ScalarType type = stored_type(tensor);
    const auto bytes = static_cast<std::uint64_t>(tensor.numel()) * c10::elementSize(type);
    header.tensors.push_back({name, dtype_name(type), tensor.sizes().vec(), begin, begin + bytes});
    begin += bytes;
  }
  std::uint64_t written = 0;
  atomic_write(path, [&](const WritePiece& to_file) {
    const auto write = [&](std::string_view piece) {
      to_file(piece);
      written += piece.size();
      if (watch) {
        watch(piece);
      }
    };
    write(header_bytes(header));
    for (const NamedTensor& entry : tensors) {
      write(bytes_of(entry.tensor.detach().to(at::kCPU, stored_type(entry.tensor)).contiguous()));
    }
  });
  return written;
}

void SafetensorsFile::check_layout() const {
  std::vector<const StoredTensor*> sorted;
  for (const StoredTensor& t : tensors()) {
    const std::uint64_t element = element_bytes(t.dtype);
    check(
        t.begin <= t.end && t.end <= data_bytes() &&
            (element == 0 || t.bytes() == static_cast<std::uint64_t>(t.numel()) * element),
        "tensor '{}' ({} of {}) should lie at bytes {} .. {} of {}", t.name, t.dtype,
        shape_text(t.sizes), t.begin, t.end, data_bytes());
    sorted.push_back(&t);
  }
  std::ranges::stable_sort(
      sorted, {}, [](const StoredTensor* t) { return std::pair(t->begin, t->end); });
  std::uint64_t end = 0;
  for (const StoredTensor* tensor : sorted) {
    check(
        tensor->begin == end, "tensor '{}' begins at byte {}{}{}", tensor->name, tensor->begin,
        tensor->begin < end ? ", inside another that ends at " : ", after a gap from ", end);
    end = tensor->end;
  }
  check(end == data_bytes(), "its tensors end at byte {} of {}", end, data_bytes());
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const std::uint64_t size = file_.size();
  check(size >= 8, "it is shorter than its 8-byte header length");
  std::array<char, 8> first;
  file_.read(0, first.data(), 8);
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), 8);
  // A file of torch.save begins with "PK" (zip) or 0x80 (an old pickle) instead of a length. A
  // valid length may begin with these bytes, but never exceeds the file.
  const std::string_view begin(first.data(), 8);
  ABT_CHECK(
      length <= size - 8 || !(begin.starts_with("PK") || begin.starts_with("\x80")), DamagedData,
      "{}: expected a safetensors file, but this one is from torch.save; "
      "convert it in Python with safetensors.torch.save_file(state_dict, ...)",
      path);
  ABT_CHECK(
      length <= size - 8 || first[0] != '{', DamagedData,
      "{}: expected a safetensors file, but this one is JSON, as an index of shards is; `abtrain "
      "decompose` reads an index, and in Python a dictionary of all shards' tensors can be saved "
      "as "
      "one file with safetensors.torch.save_file",
      path);
  check(
      length <= size - 8, "its header should have {} bytes, but only {} follow", length, size - 8);
  check(
      length <= kLargestHeader, "its header should have {} bytes; at most {} are allowed", length,
      kLargestHeader);
  std::string text(length, '\0');
  file_.read(8, text.data(), length);
  begin_ = 8 + length;
  header_ = parse_header(text, path);
  for (const StoredTensor& tensor : header_.tensors) {
    places_.emplace(tensor.name, places_.size());
  }
  check_layout();
}

void SafetensorsFile::strip(const std::string& prefix) {
  places_.clear();
  for (StoredTensor& tensor : header_.tensors) {
    tensor.name.erase(0, prefix.size());
    places_.emplace(tensor.name, places_.size());
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : header_.metadata) {
    constexpr std::string_view kShape = "shape:";
    const bool names = key.starts_with(kShape) && key.substr(kShape.size()).starts_with(prefix);
    metadata.emplace(
        names ? std::string(kShape) + key.substr(kShape.size() + prefix.size()) : key, value);
  }
  header_.metadata = std::move(metadata);
}

std::vector<std::string> SafetensorsFile::names() const {
  return mapped(tensors(), &StoredTensor::name);
}

at::Tensor SafetensorsFile::read(
    const std::string& name, const std::vector<std::int64_t>& sizes) const {
  return load(find(name, sizes)).to(at::kFloat);
}

at::Tensor SafetensorsFile::read_integers(
    const std::string& name, const std::vector<std::int64_t>& sizes) const {
  const StoredTensor& tensor = find(name, sizes);
  check(tensor.dtype == "I32", "tensor '{}' is {}, not I32", name, tensor.dtype);
  return load_as(tensor, at::kInt);
}

bool SafetensorsFile::holds(const std::string& name, const at::Tensor& tensor) const {
  const StoredTensor& stored = find(name, tensor.sizes().vec());
  const auto type = type_of(stored.dtype);
  check(type.has_value(), "tensor '{}' is of the unknown type {}", name, stored.dtype);
  const at::Tensor found = load_as(stored, *type);
  return c10::isFloatingType(*type) && tensor.is_floating_point()
             ? at::allclose(found.to(tensor.scalar_type()), tensor, 1e-2, 1e-6, true)
             : at::equal(found.to(at::kDouble), tensor.to(at::kDouble));
}

const StoredTensor& SafetensorsFile::find(
    const std::string& name, const std::vector<std::int64_t>& sizes) const {
  const auto place = places_.find(name);
  check_fit(place != places_.end(), "tensor '{}' is missing", name);
  const StoredTensor& tensor = tensors()[place->second];
  check_fit(
      tensor.sizes == sizes, "tensor '{}' has shape {}, expected {}", name,
      shape_text(tensor.sizes), shape_text(sizes));
  return tensor;
}

at::Tensor SafetensorsFile::load(const StoredTensor& tensor) const {
  const auto type = float_type(tensor.dtype);
  check(
      type.has_value(), "tensor '{}' is {}, not F32, F64, F16 or BF16", tensor.name, tensor.dtype);
  return load_as(tensor, *type);
}

at::Tensor SafetensorsFile::load_as(const StoredTensor& stored, at::ScalarType type) const {
  at::Tensor tensor = at::empty(stored.sizes, type);
  file_.read(begin_ + stored.begin, tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

void SafetensorsFile::copy(const StoredTensor& tensor, const WritePiece& write) const {
  file_.copy(begin_ + tensor.begin, begin_ + tensor.end, write);
}

std::vector<std::int64_t> SafetensorsFile::shape(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? std::vector<std::int64_t>{} : tensors()[place->second].sizes;
}

std::string SafetensorsFile::metadata(const std::string& key) const {
  const auto found = metadata().find(key);
  return found == metadata().end() ? std::string() : found->second;
}

std::int64_t SafetensorsFile::columns(const std::string& name) const {
  const auto sizes = shape(name);
  check(sizes.size() == 2 && sizes[1] > 0, "tensor '{}' is not a matrix", name);
  return sizes[1];
}

}  // namespace abtrain::state
