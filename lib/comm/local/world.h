// The local back end: workers are threads of this process, on one CPU or sharing one GPU.
//
// Members work directly on each other's buffers: in an all-reduce, member k reduces chunk k of all
// buffers and writes the result into all of them. The members wait for each other once before and
// once after that. A call only posts its buffer; wait() does the work, after completing the earlier
// calls. (For small buffers and CUDA tensors, the member that posts last does all the work.)
//
// When a worker fails, the code that runs it calls abort(). Then every other worker that is waiting
// or makes a later call, in any communicator of the world, throws Error(PeerLost). Waiting longer
// than the time-out also aborts the world; the error names the missing workers.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure.h"

namespace abtrain::comm {

class LocalGroup;

class LocalWorld : public Failure, public std::enable_shared_from_this<LocalWorld> {
 public:
  // timeout_seconds: how long a worker waits for the others in one collective; at most 1e8, because
  // more overflows the clock.
  explicit LocalWorld(double timeout_seconds) : timeout(timeout_seconds) {}

  // Ends all waits with Error(PeerLost). Keeps the first cause; later ones are only echoes.
  void abort(std::exception_ptr cause) noexcept;
  // Creates one communicator per worker, in rank order; each is for one thread. They share
  // ownership of the world.
  std::vector<std::unique_ptr<Communicator>> communicators(int workers);

  // Creates the group of these workers (ranks in the world). An abort wakes its members.
  std::shared_ptr<LocalGroup> make_group(const std::vector<int>& workers);

  const double timeout;

 private:
  std::mutex groups_mutex_;
  std::vector<std::weak_ptr<LocalGroup>> groups_;
};

}  // namespace abtrain::comm
