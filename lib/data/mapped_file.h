// A file in the process's address space: bytes are read from disk when they are accessed, and the
// kernel may drop them. Bytes that cannot be read become zeros, and check_mapped_files()
// (base/file_mapping.h) then throws.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace abtrain::data {

// Returns the file's bytes, as a flat uint8 tensor at an address that is a multiple of 64. Do not
// write to this tensor. Small files are read at once. Throws Error: MissingInput; DamagedData if it
// is not a regular file; Io.
at::Tensor mapped_file(const std::string& path);

}  // namespace abtrain::data
