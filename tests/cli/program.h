// Runs the program as a user does: through the shell, by its exit code and what
// it prints.
#pragma once

#include <sys/wait.h>

#ifdef ABTRAIN_FORK_CLIENT
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#endif

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "error_of.h"

namespace abtrain {

struct Outcome {
  int exit_code = -1;
  std::string text;
};

// FullDisk: standard error, while standard output has no room.
enum class Stream { Out, Error, FullDisk };

#ifdef ABTRAIN_FORK_CLIENT
// Starts the program with a server in it (fork_server.cpp), which ends with
// this process. The client that stands for the program.
inline std::string start_server() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "abtrain-test-" + std::to_string(::getpid());
  name.copy(address.sun_path + 1, name.size());  // no file, but a name
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listening, 64) != 0) {
    std::abort();
  }
  if (::fork() == 0) {
    ::setenv("ABTRAIN_SERVE", std::to_string(listening).c_str(), 1);
    ::setenv("LD_PRELOAD", ABTRAIN_FORK_SERVER, 1);
    ::execl(ABTRAIN_PROGRAM, ABTRAIN_PROGRAM, nullptr);
    ::_exit(127);
  }
  ::close(listening);
  ::setenv("ABTRAIN_SERVER", name.c_str(), 1);
  return ABTRAIN_FORK_CLIENT;
}
#endif

// The program, or what does the same without loading LibTorch again.
inline const std::string& quick_program() {
#ifdef ABTRAIN_FORK_CLIENT
  static const std::string program = start_server();
#else
  static const std::string program = ABTRAIN_PROGRAM;
#endif
  return program;
}

// Runs a command of the shell and keeps its standard output.
inline Outcome run_shell(const std::string& command) {
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

// Runs the program through the shell, after another command, and keeps one of
// its streams. After a command, which may set variables that count when
// LibTorch is loaded, it is the program itself.
inline Outcome run(const std::string& arguments, Stream stream, const std::string& before = "") {
  return run_shell(
      before + "'" + (before.empty() ? quick_program() : ABTRAIN_PROGRAM) + "' " + arguments +
      (stream == Stream::Out        ? " 2>/dev/null"
       : stream == Stream::FullDisk ? " 2>&1 >/dev/full"
                                    : " 2>&1 >/dev/null") +
      " </dev/null");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What the program prints where all goes well.
inline std::string output_of(const std::string& arguments, const std::string& before = "") {
  const Outcome outcome = run(arguments, Stream::Out, before);
  EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.text;
  return outcome.text;
}

// Expects this exit code, and all `parts` in the stream that is kept, which is
// returned.
inline std::string expect_exit(
    int code, const std::string& arguments, const std::vector<std::string>& parts = {},
    const std::string& before = "", Stream stream = Stream::Error) {
  const Outcome outcome = run(arguments, stream, before);
  EXPECT_EQ(outcome.exit_code, code) << arguments << "\n" << outcome.text;
  for (const std::string& part : parts) {
    expect_has(outcome.text, part);
  }
  EXPECT_FALSE(contains(outcome.text, "internal error")) << arguments << "\n" << outcome.text;
  return outcome.text;
}

// A command line that is refused, as a row of a table.
struct BadUse {
  const char* name;
  const char* arguments;
  const char* says;
  int exit_code = 2;
};

// The name of a row.
inline constexpr auto kCaseName = [](const auto& test) -> std::string { return test.param.name; };

// Each @ of the arguments stands for `place`.
inline void expect_refused(
    const BadUse& bad, const std::string& command, const std::string& place) {
  expect_exit(bad.exit_code, command + replaced(bad.arguments, "@", place), {bad.says});
}

}  // namespace abtrain
