// Runs a script of this folder with the Python of LibTorch's environment.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace abtrain::testing {

struct PythonResult {
  int status = -1;   // exit code, or minus the signal's number
  std::string text;  // both outputs
};

// server.py, which lives as long as the tests of one program.
class PythonServer {
 public:
  PythonServer() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return;
    }
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDIN_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      execl(ABTRAIN_PYTHON, ABTRAIN_PYTHON, ABTRAIN_SOURCE_DIR "/tests/parity/server.py", nullptr);
      _exit(127);
    }
    close(ends[1]);
    answers_ = fdopen(ends[0], "r");
  }
  PythonServer(const PythonServer&) = delete;
  PythonServer& operator=(const PythonServer&) = delete;
  ~PythonServer() {
    fclose(answers_);
    waitpid(child_, nullptr, 0);
  }

  PythonResult run(const nlohmann::json& words) {
    dprintf(fileno(answers_), "%s\n", words.dump().c_str());
    char* line = nullptr;
    std::size_t capacity = 0;
    const ssize_t size = getline(&line, &capacity, answers_);
    const auto answer =
        nlohmann::json::parse(std::string(line, std::max<ssize_t>(size, 0)), nullptr, false);
    std::free(line);
    return answer.is_object() ? PythonResult{answer["status"], answer["text"]} : PythonResult{};
  }

 private:
  pid_t child_ = -1;
  FILE* answers_ = nullptr;
};

inline PythonResult python(const std::string& script, std::vector<std::string> arguments) {
  static PythonServer server;
  arguments.insert(arguments.begin(), script);
  return server.run(arguments);
}

}  // namespace abtrain::testing
