// A file in the process's address space: its bytes are read from disk when they
// are looked at, and stay the kernel's to drop. Where that fails later, they become zeros, and
// check_mapped_files() (base/file_mapping.h) throws.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace abtrain::data {

// The file's bytes: a flat tensor of uint8, which must not be written to and begins at a multiple
// of 64. Those of small files are read at once. Throws Error: MissingInput, DamagedData if it is
// not a regular file, or Io.
at::Tensor mapped_file(const std::string& path);

}  // namespace abtrain::data
