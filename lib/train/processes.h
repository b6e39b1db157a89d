// The processes of one run, started by a launcher: how they reach each other,
// and how all of them end where one fails.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/control/control.h"
#include "comm/launch.h"
#include "train/back_end.h"

namespace abtrain::train {

class Processes {
 public:
  // Collective: they meet by MPI where the launcher brings it, else at an
  // address that it gives. Throws Error(Config) where there is no way.
  Processes(const comm::Launch& launch, Log& log);
  ~Processes();

  const comm::Launch& launch() const {
    return launch_;
  }
  bool first() const {
    return launch_.rank == 0;
  }
  comm::Control& control();
  // The world's communicator: Mpi, for tensors on CPUs or any GPU; Nccl, for
  // those on `device`, this worker's own GPU. Collective.
  std::unique_ptr<comm::Communicator>
  world(BackEnd back_end, at::Device device, double timeout);

  // Collective: throws on all where one comes with an error. Else returns the
  // lines of text that all have brought.
  std::vector<std::string> agree(
      std::exception_ptr mine,
      const std::string& text = "");
  // agree() on what the body throws.
  void all_or_none(const std::function<void()>& body);
  // Worker 0's text, to all.
  std::string share(const std::string& text);
  // Where a failure is recorded from now on.
  void set_folder(const std::string& folder);

  // Ends all processes with 75, from any thread: one has been told to stop
  // before the first step.
  [[noreturn]] void stop_before_start(const std::string& message);

  // Runs the body to its end, good or bad, and ends the process: it must not be
  // left otherwise once a collective has failed.
  [[noreturn]] void run(const std::function<int()>& body);

 private:
  [[noreturn]] void end_badly(const std::exception_ptr& error);

  struct State;
  comm::Launch launch_;
  std::unique_ptr<State> state_;
};

// <run folder>/failure.json: exit code, message, worker and host of what ended
// a run. An error in writing it is ignored.
void record_failure(
    const std::string& folder,
    int exit_code,
    const std::string& message,
    int worker) noexcept;

}  // namespace abtrain::train
