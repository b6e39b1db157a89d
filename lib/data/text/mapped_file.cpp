#include "data/text/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace abtrain::data {

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ABT_CHECK(
      file >= 0 || errno != ENOENT, MissingInput, "{}: no such file", path);
  ABT_CHECK(
      file >= 0, Io, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  const bool is_known = ::fstat(file, &status) == 0;
  const bool is_regular = is_known && S_ISREG(status.st_mode);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = nullptr;
  int problem = 0;
  if (is_regular && size > 0) {  // nothing cannot be mapped
    data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    problem = data == MAP_FAILED ? errno : 0;
  }
  ::close(file);
  ABT_CHECK(is_regular, DamagedData, "{}: expected a regular file", path);
  ABT_CHECK(
      problem == 0,
      Io,
      "{}: cannot be mapped: {}",
      path,
      std::strerror(problem));
  if (data != nullptr) {
    bytes_ = {static_cast<const std::uint8_t*>(data), size};
  }
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

}  // namespace abtrain::data
