#include "data/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::data {

MappedFile::MappedFile(const std::string& path) {
  const InputFile file(path);
  if (file.size() == 0) {  // nothing cannot be mapped
    return;
  }
  void* data = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  ABT_CHECK(data != MAP_FAILED, Io, "{}: cannot be mapped: {}", path, std::strerror(errno));
  bytes_ = {static_cast<const std::uint8_t*>(data), file.size()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace abtrain::data
