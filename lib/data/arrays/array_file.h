// Arrays in files of numpy.save (.npy, format 1.0 to 3.0) or safetensors. They
// are mapped: what is not looked at is not read.
//
// Errors name the file: MissingInput if it does not exist, Io if it cannot be
// read, DamagedData if its header is malformed or does not fit its size, or if
// it holds what is not used here: Fortran order, big-endian numbers, Python
// objects, dtypes other than those of the table in array_file.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace abtrain::data {

// A contiguous tensor on the file's memory, which lives as long as the tensor.
// Writing to it ends the program.
at::Tensor map_npy(const std::string& path);

// The tensors x and y of a file, and the names of the classes: a JSON list in
// the metadata "classes"; empty if there is none.
struct ArrayPair {
  at::Tensor x = {}, y = {};
  std::vector<std::string> class_names = {};
};
ArrayPair map_safetensors(const std::string& path);
// The array in a .npy file, or the tensor x of any other one.
at::Tensor map_x(const std::string& path);

}  // namespace abtrain::data
