// Arrays in files of numpy.save (.npy, format 1.0 to 3.0) or safetensors. They
// are mapped: what is not looked at is not read.
//
// Errors name the file: MissingInput if it does not exist, Io if it cannot be
// read, DamagedData if its header is malformed or does not fit its size, or if
// it holds what is not used here: Fortran order, big-endian numbers, Python
// objects, other dtypes than those of state::type_of().
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace abtrain::data {

// The array of a .npy file, or the tensor of this name of any other file;
// `expected` is what the message says of the file if it is not there. It is a
// contiguous tensor on the file's memory, which lives as long as the tensor.
// Writing to it ends the program.
at::Tensor map_array(const std::string& path, const std::string& name, const char* expected);

// The names of the classes: a JSON list in the metadata "classes" of a
// safetensors file; empty if there is none.
std::vector<std::string> class_names_in(const std::string& path);

}  // namespace abtrain::data
