// Runs the program as a user does: through the shell, by its exit code and what
// it prints.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace abtrain {

struct Outcome {
  int exit_code = -1;
  std::string text;
};

// FullDisk: standard error, while standard output has no room.
enum class Stream { Out, Error, FullDisk };

// Runs the program through the shell, after another command, and keeps one of
// its streams.
inline Outcome run(
    const std::string& arguments,
    Stream stream,
    const std::string& before = "") {
  const std::string command =
      before + "'" + ABTRAIN_PROGRAM + "' " + arguments +
      (stream == Stream::Out         ? " 2>/dev/null"
       : stream == Stream::FullDisk ? " 2>&1 >/dev/full"
                                    : " 2>&1 >/dev/null") +
      " </dev/null";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return outcome;
  }
  std::array<char, 4096> buffer;
  std::size_t count = 0;
  while ((count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    outcome.text.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) {
    outcome.exit_code = WEXITSTATUS(status);
  }
  return outcome;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace abtrain
