// The processes of one run, started by a launcher: how they reach each other,
// and how all of them end if one fails.
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
  // Collective: they meet over MPI if the launcher provides it, else at the
  // address it gives. Throws Error(Config) if there is neither.
  Processes(const comm::Launch& launch, Log& log);
  ~Processes();

  const comm::Launch& launch() const {
    return launch_;
  }
  bool first() const {
    return launch_.rank == 0;
  }
  comm::Control& control();
  // The communicator of the world. Mpi is for tensors on CPUs or any GPU, Nccl
  // for those on `device`, this worker's own GPU. Collective.
  std::unique_ptr<comm::Communicator>
  world(BackEnd back_end, at::Device device, double timeout);

  // Collective: throws on all processes if one brings an error. Otherwise
  // returns the texts of all processes, one line each, in rank order.
  std::vector<std::string> agree(
      std::exception_ptr mine,
      const std::string& text = "");
  // agree() on whatever the body throws.
  void all_or_none(const std::function<void()>& body);
  // Collective: returns the text of worker 0 on all.
  std::string share(const std::string& text);
  // The folder in which failures are recorded from now on.
  void set_folder(const std::string& folder);

  // Ends all processes with exit code 75, from any thread: one has been asked
  // to stop before the first step.
  [[noreturn]] void stop_before_start(const std::string& message);

  // Runs the body to its end, good or bad, and ends the process. Once a
  // collective has failed, the process must not be left in any other way.
  [[noreturn]] void run(const std::function<int()>& body);

 private:
  [[noreturn]] void end_badly(const std::exception_ptr& error);

  struct State;
  comm::Launch launch_;
  std::unique_ptr<State> state_;
};

// Writes <run folder>/failure.json: exit code, message, worker and host of what
// ended a run. Errors while writing it are ignored.
void record_failure(
    const std::string& folder,
    int exit_code,
    const std::string& message,
    int worker) noexcept;

}  // namespace abtrain::train
