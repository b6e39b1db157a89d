// The check that ops on flat buffers apply to each argument, before they take its elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <type_traits>

#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::ops {

// Requires a 1-D contiguous tensor of at least `numel` elements with this dtype and device. `what`
// names the tensor in the error.
inline void check_flat(
    const at::Tensor& tensor, at::ScalarType type, std::int64_t numel, c10::Device device,
    const char* what) {
  ABT_ASSERT(
      tensor.dim() == 1 && tensor.is_contiguous() && tensor.scalar_type() == type &&
          tensor.numel() >= numel && tensor.device() == device,
      "{}: expected {} flat {} on {}, got {}{} on {}", what, numel, type, device,
      tensor.scalar_type(), tensor.sizes(), tensor.device());
}

// Returns the elements of a tensor that passes the check with the dtype of T. T is const if the op
// only reads them.
template <class T>
T* flat(const at::Tensor& tensor, std::int64_t numel, c10::Device device, const char* what) {
  using Element = std::remove_const_t<T>;
  check_flat(tensor, c10::CppTypeToScalarType<Element>::value, numel, device, what);
  if constexpr (std::is_const_v<T>) {
    return tensor.const_data_ptr<Element>();
  } else {
    return tensor.mutable_data_ptr<Element>();
  }
}
// Like flat(), but returns null for an undefined tensor.
template <class T>
T* flat_or_null(
    const at::Tensor& tensor, std::int64_t numel, c10::Device device, const char* what) {
  return tensor.defined() ? flat<T>(tensor, numel, device, what) : nullptr;
}

}  // namespace abtrain::ops
