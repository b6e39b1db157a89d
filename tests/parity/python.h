// Runs a script of this folder with the Python of LibTorch's environment, and has what tests
// share that compare with its tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "error_of.h"
#include "nn/model.h"

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

// What the script says, which must end well.
inline std::string python(const std::string& script, std::vector<std::string> arguments) {
  static PythonServer server;
  arguments.insert(arguments.begin(), script);
  const PythonResult done = server.run(arguments);
  if (done.status != 0) {
    throw std::runtime_error(
        script + " ended with " + std::to_string(done.status) + ": " + done.text);
  }
  return done.text;
}

// The bytes of a contiguous tensor.
inline std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// The float32 numbers of a file.
inline at::Tensor read_numbers(const std::string& path, std::int64_t numel) {
  const at::Tensor numbers = at::empty({numel});
  const auto bytes = static_cast<std::streamsize>(numbers.nbytes());
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(numbers.mutable_data_ptr()), bytes);
  EXPECT_EQ(file.gcount(), bytes);
  return numbers;
}

// A training pass leaves the gradients of all parameters of a dense model.
inline void require_gradients(const nn::Model& model) {
  for (const nn::NamedWeight& w : model.weights()) {
    w.weight->dense.requires_grad_();
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    p.tensor->requires_grad_();
  }
}

// Values, running statistics and all, as numbers of another type.
inline void to_dtype(nn::Model& model, at::ScalarType dtype) {
  for (const nn::NamedWeight& w : model.weights()) {
    w.weight->set_dense(w.weight->dense.detach().to(dtype));
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    *p.tensor = p.tensor->detach().to(dtype);
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    *b.tensor = b.tensor->to(dtype);
  }
}

// Calls `compare` with the name and the gradient of each, and with the one that is wanted: a value
// of the other model.
inline void each_gradient(
    const nn::Model& model, const nn::Model& wanted,
    const std::function<void(const std::string&, const at::Tensor&, const at::Tensor&)>& compare) {
  for (std::size_t i = 0; i < model.weights().size(); ++i) {
    const nn::NamedWeight& w = model.weights()[i];
    compare(w.name, w.weight->dense.grad(), wanted.weights()[i].weight->dense);
  }
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const nn::NamedParameter& p = model.parameters()[i];
    compare(p.name, p.tensor->grad(), *wanted.parameters()[i].tensor);
  }
}

}  // namespace abtrain::testing
