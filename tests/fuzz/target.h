// What a fuzz target gives the driver (driver.cpp), or libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace abtrain::fuzz {

// Words of the format, which mutations insert. Each target defines them.
const std::vector<std::string>& words();

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

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace abtrain::fuzz
