// A file in the process's address space: its bytes are read from disk when they
// are looked at, and stay the kernel's to drop.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace abtrain::data {

// The constructor throws Error: MissingInput, DamagedData if it is
// not a regular file, or Io.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const {
    return bytes_;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace abtrain::data
