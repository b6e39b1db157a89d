// Left-aligned columns for printed tables.
#pragma once

#include <algorithm>
#include <string>

#include "base/text.h"

namespace abtrain {

// The number of characters in UTF-8 text.
inline std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

inline std::string pad(const std::string& text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return text + std::string(columns < width ? width - columns : 1, ' ');
}

inline std::string row(const std::string& label, const std::string& value) {
  return "  " + pad(label, 20) + value + "\n";
}

}  // namespace abtrain
