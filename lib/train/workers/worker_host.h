// Where the workers of a run are: threads of this process (train/workers/local_workers.h), or the
// processes that a launcher started (train/workers/processes.h). A WorkerHost knows how they meet
// and agree, and how failures and requests to stop reach them. "Host" alone means a machine.
// "Collective" means: called by all processes, in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/mapped.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/control/control.h"
#include "config/run_options.h"
#include "train/back_end.h"

namespace abtrain::train {

// A loss of workers. `left` holds the former ranks of the remaining workers, in their new order.
struct Loss {
  std::vector<std::string> before;  // all workers before the loss: "worker 2 on nodeb"
  std::vector<int> left;
  Stopwatch since;  // since the loss was noticed

  std::vector<std::string> lost() const;
  // "worker 2 on nodeb is lost"
  std::string text() const;
  // Records that more workers have been lost. `these` are the indices in `left` of the workers that
  // remain.
  void keep(const std::vector<int>& these);
};

class WorkerHost {
 public:
  // The work of a worker, on its own device. Workers that are threads do it at the same time.
  using Work = std::function<void(comm::Communicator&, at::Device, comm::Control&)>;

  virtual ~WorkerHost() = default;
  // The lowest rank of the workers in this process.
  int first_rank;
  const int workers_in_process;
  // Number of workers that share the cores and the memory of this machine.
  const int workers_on_machine;
  // True in the process that writes the run folder and the report.
  bool writes() const {
    return first_rank == 0;
  }

  // The device of the first worker in this process, chosen by the key `device`. Sets the members of
  // `place` about processes, their launcher and GPUs. Collective. Throws Error(Config) if there is
  // no such device.
  virtual at::Device find_device(device::DeviceChoice wanted, WorkerPlace& place) = 0;
  // Collective. Returns the result of the body in each process, in rank order: any value that JSON
  // can hold. Throws in all processes if the body throws in one.
  template <class Body>
  auto gather(const Body& body) {
    using Result = std::invoke_result_t<Body>;
    return mapped(
        gather_text([&] { return nlohmann::json(body()).dump(); }),
        [](const std::string& text) { return nlohmann::json::parse(text).get<Result>(); });
  }
  // gather() for a body that returns nothing.
  void all_or_none(const std::function<void()>& body) {
    gather_text([&] {
      body();
      return std::string();
    });
  }
  // Runs the body only in the process that writes; returns its result in all
  // processes.
  template <class Body>
  auto decide(const Body& body) {
    return gather([&] { return writes() ? body() : std::invoke_result_t<Body>(); }).front();
  }
  // Call once the run folder is ready. Collective. Throws Error(Io) if a process does not see it.
  virtual void join_folder(const std::string& folder) = 0;
  // The hosts of all workers, in rank order, once they have joined the folder.
  virtual std::vector<std::string> hosts() const = 0;
  // Runs the work of each worker in this process to its end. A signal
  // (base/signals.h) asks all workers of the run to stop; if one fails, all
  // end. Collective.
  virtual void run_workers(
      const config::RunOptions& options, BackEnd back_end, at::Device device, const Work& work) = 0;
  // Allows regroup() after run_workers() from now on. Returns "", or why that is impossible, on all
  // processes alike.
  virtual std::string go_on_without_lost(BackEnd back_end) = 0;
  // Call after run_workers() has thrown an Error(PeerLost), `end`. The workers that are left form a
  // new world, for another run_workers(); worker numbers and first_rank change. Collective. Throws
  // `end` if something other than the loss of a worker ended the run.
  virtual Loss regroup(const std::exception_ptr& end) = 0;
  // Called with the error that ended a session after it had begun to write its run folder, which is
  // still locked.
  virtual void record(const std::string& folder, const std::exception_ptr& error) = 0;

 protected:
  // As gather(), for a text without a 0 byte.
  virtual std::vector<std::string> gather_text(const std::function<std::string()>& body) = 0;
  WorkerHost(int first, int in_process, int on_machine)
      : first_rank(first), workers_in_process(in_process), workers_on_machine(on_machine) {}
};

// Writes <run folder>/failure.json: exit code, message, worker and host of the error that ended a
// run, and the step of a StepError. Errors while writing it are ignored. Returns false if another
// process has written the file before: the cause is known then.
bool record_failure(
    const std::string& folder, const std::exception_ptr& error, int worker,
    const std::string& host) noexcept;

}  // namespace abtrain::train
