// A file mapped into memory. Its bytes are read from disk on first access, which fails if another
// program has shortened the file in the meantime or if the disk fails. Such a failure raises
// SIGBUS, which would end the process. Instead, a signal handler replaces the lost bytes with
// zeros, and the checks below throw. Signal handlers belong to the process, so this is one of the
// few places with global state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/files.h"

namespace abtrain {

class FileMapping {
 public:
  // Maps the whole file, which must not be empty. Throws Error(Io).
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

  struct Entry;  // in the list that the signal handler reads

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_;
  Entry* entry_ = nullptr;
};

// Throws Error(Io) naming the file if bytes of an existing mapping were lost when they were read.
// Call it after reading mapped bytes and before anything depends on them; it costs almost no time.
void check_mapped_files();

// The same, but also throws if a mapped file has become shorter: the rest of its last page then
// reads as zeros without a signal. Queries the size of each file.
void check_sizes_of_mapped_files();

}  // namespace abtrain
