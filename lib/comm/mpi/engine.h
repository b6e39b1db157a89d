// The thread that makes all MPI calls of a process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/failure.h"
#include "comm/mpi/collective.h"
#include "comm/mpi/world.h"

namespace abtrain::comm {

class MpiWorld::Engine {
 public:
  // A collective that its owner may wait for.
  struct Job {
    std::shared_ptr<MpiGroup> group;
    Call call;
    std::shared_ptr<MpiGroup> part;  // of a split: the new group
    std::unique_ptr<MpiCollective> collective;
    bool done = false;
  };

  Engine(int rank, int size) : rank_(rank), size_(size) {}
  // Starts the thread, which shares ownership of the engine, and initializes
  // MPI on it.
  static void start(const std::shared_ptr<Engine>& engine);
  // Ends MPI and the thread, or leaves both alone after a failure.
  void finish();

  std::shared_ptr<Job> post(std::shared_ptr<MpiGroup> group, Call call);
  // Throws Error when a worker has failed.
  void wait(const Job& job);
  void abort(std::exception_ptr cause) noexcept;
  const Failure& failure() const {
    return failure_;
  }
  const std::shared_ptr<MpiGroup>& world() const {
    return world_;
  }
  void set_timeout(double seconds) {
    timeout_ = seconds;
  }
  bool is_fault_tolerant() const {
    return mpi_->is_fault_tolerant() != 0;
  }
  std::vector<int> regroup();

 private:
  void run();
  void initialize();
  void serve();
  bool wait_for_regroup();
  void shrink();
  bool advance();
  void split(Job& job);
  void finish_job(Job& job);

  const int rank_;
  const int size_;
  const MpiTable* mpi_ = nullptr;  // loaded by the thread
  std::shared_ptr<MpiGroup> world_;
  std::vector<std::shared_ptr<MpiGroup>> groups_;  // to be freed at the end
  std::deque<std::shared_ptr<Job>> open_;          // the thread's own
  // Of lost worlds: MPI may still touch their buffers.
  std::vector<std::shared_ptr<Job>> abandoned_;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> inbox_;
  bool started_ = false;
  bool ending_ = false;
  bool ended_ = false;
  bool regroups_ = false;         // asked for, and not done yet
  std::vector<int> left_;         // by the last regroup()
  std::atomic<double> timeout_ = 600;
  Failure failure_;
  std::thread thread_;
};

}  // namespace abtrain::comm
