// Reads the options of a benchmark's command line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace abtrain::bench {

// The word after `name`, or `otherwise` where the option is absent.
inline std::string word(int argc, char** argv, const char* name, const char* otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) {
      return argv[i + 1];
    }
  }
  return otherwise;
}

inline double number(int argc, char** argv, const char* name, double otherwise) {
  const std::string given = word(argc, argv, name, "");
  return given.empty() ? otherwise : std::atof(given.c_str());
}

inline std::int64_t integer(int argc, char** argv, const char* name, std::int64_t otherwise) {
  const std::string given = word(argc, argv, name, "");
  return given.empty() ? otherwise : std::atoll(given.c_str());
}

}  // namespace abtrain::bench
