// Workers that are processes started by a launcher (mpirun, srun, ...), one worker each: how they
// reach each other, and how all of them end if one fails.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "comm/control/channel.h"
#include "comm/launch.h"
#include "comm/mpi/world.h"
#include "comm/nccl/world.h"
#include "comm/store.h"
#include "train/workers/worker_host.h"

namespace abtrain::train {

class Processes : public WorkerHost {
 public:
  // Collective: the processes meet over MPI if the launcher provides it, else at the launcher's
  // address. Throws Error(Config) if there is neither.
  Processes(const comm::Launch& launch, Log& log);
  // Waits until the other processes leave too.
  ~Processes() override;

  // Throws Error(Config), too, if only some of the workers have a GPU.
  at::Device find_device(device::DeviceChoice wanted, WorkerPlace& place) override;
  // Failures are recorded in the folder from now on.
  void join_folder(const std::string& folder) override;
  std::vector<std::string> hosts() const override;
  void run_workers(
      const config::RunOptions& options, BackEnd back_end, at::Device device,
      const Work& work) override;
  std::string go_on_without_lost(BackEnd back_end) override;
  Loss regroup(const std::exception_ptr& end) override;
  void record(const std::string&, const std::exception_ptr&) override {
    // run() does it.
  }

  // Sets the time-out of collectives, in seconds, and that of agreements of all workers, which get
  // at least a minute. Before the first call, both are 300.
  void set_timeout(double seconds);
  // Called while other workers do not answer; see ControlOptions::waiting.
  void set_waiting(std::function<void(const std::string& names)> waiting) {
    waiting_ = std::move(waiting);
  }

  // Through this, a request to stop reaches all workers.
  comm::Control& control() {
    return *channel_;
  }

  // Ends all processes with exit code 75, because one was asked to stop before the first step. May
  // be called from any thread.
  [[noreturn]] void stop_before_start(const std::string& message);

  // Runs the body until it returns or throws, then ends the process. Once a collective has failed,
  // the process must not end in any other way.
  [[noreturn]] void run(const std::function<int()>& body);

 private:
  std::vector<std::string> gather_text(const std::function<std::string()>& body) override;
  [[noreturn]] void end_badly(const std::exception_ptr& error);
  // Reports that worker 0 was lost before it wrote the summary. Returns the exit code.
  int end_without_summary(const std::exception_ptr& cause);
  // Opens channel_; mpi_ or store_ must be set. Collective.
  void meet(double timeout);
  // Kills workers on this host that are stopped (SIGSTOP), because MPI would wait for them. A
  // worker that is stopped for longer than train.timeout is lost.
  void end_stopped();

  // Called by the channel's thread: the worker itself may be in the middle of a step, or may have
  // noticed the failure already.
  void on_failure(std::exception_ptr cause, int gone);
  // From now on, the loss of another worker does not kill this process: it has noticed the loss, or
  // has done its work.
  void expect_losses();
  // Prints once, on worker 0, why all processes stop, no matter which process received the request
  // to stop.
  void say_once(const std::string& message);
  // Records the error that ended the run. Returns false if another process has done so.
  bool record_once(const std::exception_ptr& error, int worker);

  comm::Launch launch_;
  const bool on_one_host_;
  Log& log_;
  std::shared_ptr<comm::MpiWorld> mpi_;
  std::unique_ptr<comm::Communicator> meeting_;  // over MPI, if there is one
  std::unique_ptr<comm::Store> store_;           // used without MPI
  std::shared_ptr<comm::NcclWorld> nccl_;
  bool quiet_ = false;  // another process prints the error
  bool told_ = false;   // on_failure() has done its work
  std::condition_variable changed_;
  mutable std::mutex mutex_;
  std::string folder_;
  // Hosts and process IDs of all workers, known after join_folder().
  std::vector<std::string> hosts_;
  std::vector<pid_t> processes_;
  std::atomic<bool> goes_on_ = false;   // the run continues without lost workers
  std::atomic<bool> expects_ = false;   // expect_losses() has been called
  std::atomic<double> timeout_;  // seconds
  std::function<void(const std::string& names)> waiting_ = [](const std::string&) {};
  std::atomic<bool> said_ = false;
  std::jthread kills_;  // after a loss, unless it is expected
  std::jthread ends_;   // after another failure
  // Its thread calls on_failure(), so it must end before the members that on_failure() uses.
  std::unique_ptr<comm::ControlChannel> channel_;
};

}  // namespace abtrain::train
