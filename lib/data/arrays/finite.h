// Checks that all floating-point numbers of an array are finite, before any are used.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace abtrain::data {

// Returns the largest magnitude in `numbers`, N examples of floating-point numbers. Throws
// DamagedData, which names the file, `name` (such as "x") and the example, for nan, infinity, or a
// magnitude above half the largest fp32 number.
double largest_magnitude(const at::Tensor& numbers, const std::string& path, const char* name);

}  // namespace abtrain::data
