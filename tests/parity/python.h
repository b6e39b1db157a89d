// Runs a script of this folder with the Python of LibTorch's environment.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace abtrain::testing {

struct PythonResult {
  int status = -1;   // exit code
  std::string text;  // both outputs
};

inline PythonResult python(const std::string& script, const std::vector<std::string>& arguments) {
  std::string command = std::string("'") + ABTRAIN_PYTHON + "' '" + ABTRAIN_SOURCE_DIR +
                        "/tests/parity/" + script + "'";
  for (const std::string& argument : arguments) {
    command += " '" + argument + "'";
  }
  PythonResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.text.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace abtrain::testing
