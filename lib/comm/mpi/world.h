// The MPI back end: workers are processes joined by MPI. GPU buffers are copied to page-locked
// memory on a stream of their own, and back on the worker's current stream.
//
// In each process, one thread makes all MPI calls and advances every open collective while the
// worker computes. Collectives consist of point-to-point messages, so that each member sends
// exactly the bytes of comm/traffic.h. To reduce, a member sends chunk j of its buffer to member j,
// which adds up the n chunks in rank order (so that the sum is bit-identical to the local back
// end's) and sends the result to all. Pieces of 256 KiB keep both directions of a link busy.
//
// A collective that makes no progress within the time-out, or a call of abort(), ends every wait
// with Error(PeerLost).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/mpi/collective.h"

namespace abtrain::comm {

class MpiWorld : public Failure, public std::enable_shared_from_this<MpiWorld> {
 public:
  // Starts the thread, which shares ownership of the world and initializes MPI. Collective
  // (MPI_Init). `rank` and `size` are the launcher's. `seconds` limits MPI_Init and is the time-out
  // until set_timeout().
  // Throws Error(PeerLost) when MPI_Init takes longer because a process has not called it;
  // Error(Config) when MPI's rank or number of processes differs from the launcher's, or no MPI was
  // found (comm/mpi/library.h). After an error here the process must end by _Exit, since MPI may
  // never return.
  // Releasing the last copy of the result calls finish().
  static std::shared_ptr<MpiWorld> start(int rank, int size, double seconds);

  std::unique_ptr<Communicator> communicator();
  // "Open MPI v4.1.4 (libmpi.so.40) over UCX, tags up to 8388607"
  const std::string& about() const {
    return about_;
  }
  void set_timeout(double seconds) {
    timeout_ = seconds;
  }
  // Thread-safe. Keeps the first cause.
  void abort(std::exception_ptr cause) noexcept;

  // Whether regroup() can work: the processes survive the loss of another one (Open MPI 5, `mpirun
  // --with-ft ulfm`).
  bool is_fault_tolerant() const {
    return mpi_->is_fault_tolerant() != 0;
  }
  // After a failure, makes a new world of the workers that are left, and returns their ranks in the
  // old world. All open calls end with Error(PeerLost), and no communicator of the old world may be
  // in use. Collective: waits until each other worker has called it or has ended. Throws
  // Error(PeerLost) if that takes longer than the time-out.
  std::vector<int> regroup();

  // Ends MPI and the thread (MPI_Finalize, which is collective). Returns false if the world was
  // aborted or has regrouped, or if MPI_Finalize does not return: MPI is then not ended, and the
  // process must end by _Exit. Otherwise the process must end by exit(): MPICH reports a normal end
  // to its launcher only in an exit handler, and without that report the launcher kills the other
  // processes.
  bool finish();

  // For the world's communicators: a collective, posted by a worker to the thread.
  struct Job {
    std::shared_ptr<MpiGroup> group;
    Call call;
    std::shared_ptr<MpiGroup> part = {};  // split: the new group
    std::unique_ptr<MpiCollective> collective = {};
    bool done = false;
  };
  std::shared_ptr<Job> post(std::shared_ptr<MpiGroup> group, Call call);
  // Throws Error when a worker has failed.
  void wait(const Job& job);

 private:
  MpiWorld(int rank, int size, double timeout) : rank_(rank), size_(size), timeout_(timeout) {}

  // Run on the thread (world_thread.cpp).
  void run();
  void initialize();
  void serve();
  bool wait_for_regroup();
  void shrink();
  bool answer() const;
  bool advance();
  bool may_begin(const Job& job) const;
  void split(Job& job);
  void finish_job(Job& job);

  const int rank_;
  const int size_;
  const MpiTable* mpi_ = nullptr;  // loaded by the thread
  std::string about_;
  std::shared_ptr<MpiGroup> world_;
  std::vector<std::shared_ptr<MpiGroup>> groups_;  // to be freed at the end
  std::deque<std::shared_ptr<Job>> open_;          // used by the thread only
  // Jobs of earlier worlds, kept because MPI may still access their buffers.
  std::vector<std::shared_ptr<Job>> abandoned_;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> inbox_;
  bool ending_ = false;
  bool ended_ = false;
  bool finalized_ = false;
  bool regroups_ = false;  // regroup() was called and is not yet done
  std::vector<int> left_;  // result of the last regroup()
  std::atomic<double> timeout_;
  std::thread thread_;
};

}  // namespace abtrain::comm
