#include "data/mapped_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <memory>

#include "base/file_mapping.h"

namespace abtrain::data {

namespace {

// Files of at most this many bytes are read, not mapped: a process may have 65,530 mappings
// (vm.max_map_count), and a text may have more files.
constexpr std::size_t kSmall = std::size_t{1} << 16;

}  // namespace

at::Tensor mapped_file(const std::string& path) {
  const InputFile file(path);
  const std::size_t size = file.size();
  if (size <= kSmall) {
    const at::Tensor bytes = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
    file.read(0, bytes.mutable_data_ptr(), size);
    return bytes;
  }
  const auto mapping = std::make_shared<const FileMapping>(file);
  return at::from_blob(
      // from_blob() takes a non-const pointer, but nothing writes through it.
      const_cast<std::uint8_t*>(mapping->data()), {static_cast<std::int64_t>(size)},
      [mapping](void*) {}, at::kByte);
}

}  // namespace abtrain::data
