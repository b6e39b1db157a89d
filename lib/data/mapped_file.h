// A file in the process's address space: bytes are read from disk when they are accessed, and the
// kernel may drop them. If a later read fails, they become zeros, and check_mapped_files()
// (base/file_mapping.h) throws.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace abtrain::data {

// The file's bytes, as a flat uint8 tensor that begins at a multiple of 64 and must not be written
// to. Small files are read at once. Throws Error: MissingInput; DamagedData if it is not a regular
// file; Io.
at::Tensor mapped_file(const std::string& path);

}  // namespace abtrain::data
