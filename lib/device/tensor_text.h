// Lets formatted() show a tensor's type, sizes and device as LibTorch does:
// Float, [2, 3], cuda:0.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>
#include <fmt/base.h>

#include <algorithm>
#include <concepts>
#include <string>

template <class T>
requires std::same_as<T, at::ScalarType> || std::same_as<T, at::IntArrayRef> ||
    std::same_as<T, at::Device>
struct fmt::formatter<T> {
  constexpr const char* parse(fmt::format_parse_context& text) {
    return text.begin();
  }
  fmt::appender format(const T& value, fmt::format_context& out) const {
    const std::string shown = c10::str(value);
    return std::copy(shown.begin(), shown.end(), out.out());
  }
};
