// Workers that are processes, joined by MPI; buffers on the CPU (those on a GPU
// are copied to the host and back).
//
// One thread a process makes all MPI calls: it moves every open collective on
// while the worker computes. Collectives are made of point-to-point messages so
// that each host sends the bytes of comm/traffic.h, no more and no less: a
// member sends chunk j of its buffer to member j, which adds up the n pieces in
// rank order (the bits of every back end), and sends the result to all. Pieces
// of 256 KiB keep both directions of a link busy.
//
// A collective that moves nothing for the time-out, or abort(), ends every wait
// with Error(PeerLost).
#pragma once

#include <exception>
#include <memory>

#include "comm/communicator.h"

namespace abtrain::comm {

class MpiWorld {
 public:
  // Collective: MPI_Init. rank and size are the launcher's. Throws
  // Error(Config) where MPI sees another number of processes or abtrain was
  // built without it.
  MpiWorld(int rank, int size);
  // Collective (MPI_Finalize), unless the world was aborted: then the process
  // must end by _Exit, since MPI may never come back.
  ~MpiWorld();

  std::unique_ptr<Communicator> communicator();
  void set_timeout(double seconds);
  // Thread-safe; the first cause is kept.
  void abort(std::exception_ptr cause) noexcept;

  class Engine;

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace abtrain::comm
