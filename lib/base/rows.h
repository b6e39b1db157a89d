// Columns of tables for people: text aligned left.
#pragma once

#include <string>

namespace abtrain {

inline std::string pad(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text + " ";
}

inline std::string row(const std::string& label, const std::string& value) {
  return "  " + pad(label, 20) + value + "\n";
}

}  // namespace abtrain
