#include "data/mapped_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::data {

at::Tensor mapped_file(const std::string& path) {
  const InputFile file(path);
  const std::size_t size = file.size();
  if (size == 0) {  // nothing cannot be mapped
    return at::empty({0}, at::kByte);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  ABT_CHECK(data != MAP_FAILED, Io, "{}: cannot be mapped: {}", path, std::strerror(errno));
  return at::from_blob(
      data, {static_cast<std::int64_t>(size)}, [size](void* begin) { ::munmap(begin, size); },
      at::kByte);
}

}  // namespace abtrain::data
