// What a fuzz target gives the driver (driver.cpp).
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace abtrain::fuzz {

// Each target defines these: words of the format, which mutations insert, and
// what reads an input.
extern const std::vector<std::string> kWords;
void read_input(std::string_view input);

// How the last input ended: the driver keeps inputs that end in a new way, as
// their readers got somewhere else.
inline std::string& outcome() {
  static std::string text;
  return text;
}

// A reader may refuse what it reads by an Error of these kinds. Whatever else
// it throws is a crash: it is not caught.
inline void refusing(std::initializer_list<ErrorKind> kinds, const std::function<void()>& body) {
  try {
    body();
    outcome() = "read";
  } catch (const Error& error) {
    for (const ErrorKind kind : kinds) {
      if (error.kind() == kind) {
        outcome() = error.what();
        return;
      }
    }
    throw;
  }
}

inline std::span<const std::uint8_t> bytes_of(std::string_view input) {
  return {reinterpret_cast<const std::uint8_t*>(input.data()), input.size()};
}

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace abtrain::fuzz
