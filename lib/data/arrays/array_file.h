// Arrays in files of numpy.save (.npy, format 1.0 to 3.0) or safetensors. The files are mapped, so
// only the parts that are accessed are read.
//
// Errors name the file: MissingInput if it does not exist; Io if it cannot be read; DamagedData if
// its header is malformed or does not fit the size of the file, or if it contains something
// unsupported: Fortran order, big-endian numbers, Python objects, dtypes unknown to
// state::type_of().
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace abtrain::data {

// Returns the array of a .npy file, or the tensor `name` of any other file; if that is missing, the
// message says that `expected` was expected. The result is contiguous and may lie in the mapped
// file, which lives as long as the result. Writing to it may end the program.
at::Tensor map_array(const std::string& path, const std::string& name, const char* expected);

// The names of the classes, from a JSON list in a safetensors file's metadata "classes"; empty if
// there is none.
std::vector<std::string> class_names_in(const std::string& path);

}  // namespace abtrain::data
