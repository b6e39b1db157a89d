// Workers that are threads of this process, on one CPU or sharing one GPU.
//
// Members work on each other's buffers where they lie: member k reduces chunk
// k of all buffers and writes the result into all of them, with one meeting
// before and one after and no copy between. A call only posts its buffer; the
// work is done in wait(), which also completes the calls before it. (Small
// buffers and CUDA tensors are done by the member that posts last.)
//
// When a worker fails, its owner calls abort(): every other worker that waits
// or calls later, in whatever sub-communicator, throws Error(PeerLost). Waiting
// longer than the time-out aborts too and names the workers that did not come.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::comm {

class LocalState;

class LocalWorld {
 public:
  // Seconds that a worker waits for the others in one collective.
  LocalWorld(int size, double timeout_seconds);

  // One for each worker, in rank order; each is used by one thread. They may
  // outlive the world.
  std::vector<std::unique_ptr<Communicator>> communicators();

  // The first cause is kept; later ones are echoes of it.
  void abort(std::exception_ptr cause) noexcept;
  // Null while all is well.
  std::exception_ptr cause() const;

 private:
  int size_;
  std::shared_ptr<LocalState> state_;
};

}  // namespace abtrain::comm
