#include "data/mapped_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::data {

namespace {

// A process may have 65,530 mappings (vm.max_map_count), and a text may lie in more files.
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
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  ABT_CHECK(
      data != MAP_FAILED, Io, "{}: cannot be mapped: {}{}", path, std::strerror(errno),
      errno == ENOMEM ? ": a process may have as many mapped files as /proc/sys/vm/max_map_count "
                        "says; join the files into fewer and larger ones"
                      : "");
  return at::from_blob(
      data, {static_cast<std::int64_t>(size)}, [size](void* begin) { ::munmap(begin, size); },
      at::kByte);
}

}  // namespace abtrain::data
