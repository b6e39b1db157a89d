// A file in the address space. Its bytes are read from disk when they are looked at, so reading
// them fails where another program has cut the file short in the meantime, or where its disk fails:
// by SIGBUS, which would end the process. Instead, the lost bytes become zeros, and the checks
// below throw. Signal handlers belong to the process, so this is one of the few places with global
// state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/files.h"

namespace abtrain {

class FileMapping {
 public:
  // The whole file, which must not be empty. Throws Error(Io).
  explicit FileMapping(const InputFile& file);
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  ~FileMapping();

  const std::uint8_t* data() const {
    return data_;
  }
  std::size_t size() const {
    return size_;
  }

  struct Entry;  // of the list that the signal handler reads

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_;
  Entry* entry_ = nullptr;
};

// Throws Error(Io), which names the file, if bytes of a mapping that exists were lost when they
// were read. Whoever has read mapped bytes calls this before anything depends on them; it costs no
// time.
void check_mapped_files();

// The same, and also if a mapped file has become shorter: the rest of its last page reads as
// zeros without a signal. It asks for the size of each file.
void check_sizes_of_mapped_files();

}  // namespace abtrain
