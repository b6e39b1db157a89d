// Workers that are processes, joined by MPI, with buffers on the CPU (those on
// a GPU are copied to the host and back).
//
// In each process one thread makes all MPI calls: it advances every open
// collective while the worker computes. Collectives are made of point-to-point
// messages so that each member sends exactly the bytes of comm/traffic.h. To
// reduce, a member sends chunk j of its buffer to member j, which adds up the n
// pieces in rank order (for the same bits as in the local back end) and sends
// the result to all. Pieces of 256 KiB keep both directions of a link busy.
//
// A collective that makes no progress for the time-out, or a call of abort(),
// ends every wait with Error(PeerLost).
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::comm {

class MpiWorld {
 public:
  // Collective (MPI_Init). rank and size are the launcher's. Throws
  // Error(Config) when MPI sees another number of processes or no MPI was found
  // (comm/mpi/library.h).
  MpiWorld(int rank, int size);
  // Collective (MPI_Finalize), unless the world was aborted or has regrouped:
  // then the process must end by _Exit, since MPI may never return.
  ~MpiWorld();

  std::unique_ptr<Communicator> communicator();
  void set_timeout(double seconds);
  // Thread-safe; the first cause is kept.
  void abort(std::exception_ptr cause) noexcept;

  // Whether regroup() can work: the other processes outlive a lost one (Open
  // MPI 5, `mpirun --with-ft ulfm`).
  bool is_fault_tolerant() const;
  // Makes a new world of those that are left, after a failure on any of them;
  // all their calls end with Error(PeerLost). Returns their ranks in the world
  // before. No communicator of that may be in use any more. Collective: waits
  // for each of the others to call it or to end. Throws Error(PeerLost) if that
  // takes longer than the time-out.
  std::vector<int> regroup();

  class Engine;

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace abtrain::comm
