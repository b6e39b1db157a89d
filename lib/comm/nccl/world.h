// Workers that have a GPU each: threads of one process or processes anywhere.
//
// Collectives run on a stream of the world's own, after what the caller has
// queued on its current stream; Pending::wait() orders that stream behind the
// result and does not stop the host. CPU tensors are staged through the GPU
// before the call returns. Sums are NCCL's: in the buffer's own dtype and in
// an order of its choice, so bits may differ from those of other back ends.
//
// A thread of the world watches over what is under way. A lost worker, an
// error of NCCL or a collective that its time-out has passed aborts the world:
// what hangs on the GPU ends, later calls, waits and check_peers() throw
// Error(PeerLost), and results not waited for are void. Members that call
// different things are not compared: that ends in the time-out.
//
// Calls on several communicators are made in one order by all their members.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/share.h"

namespace abtrain::comm {

class NcclState;

// The loaded library's, as NCCL counts: 22809 is 2.28.9. 0 where NCCL is not
// compiled in.
int nccl_version();

// NCCL's version when abtrain was compiled and in the library that is loaded
// now: "2.28.9", or empty where NCCL is not compiled in. The two must agree in
// all but the last number.
struct NcclVersions {
  std::string compiled;
  std::string loaded;
};
NcclVersions nccl_versions();

class NcclWorld {
 public:
  // Collective over `size` workers, each with a GPU of its own. Waits for the
  // others at most `timeout_seconds`, here and in each collective (counted from
  // where the GPU reaches it). A world of one needs no NCCL and makes no use of
  // it, unless `even_alone` asks for it (to see whether it works).
  // Error(Config): no NCCL in this build, another NCCL than it was made for,
  // or a refusal of NCCL's such as two workers on one GPU.
  NcclWorld(
      int rank,
      int size,
      at::Device device,
      double timeout_seconds,
      const Share& share,
      bool even_alone = false);
  NcclWorld(const NcclWorld&) = delete;
  NcclWorld& operator=(const NcclWorld&) = delete;
  // Ends all its communicators, the youngest first. Collective, with the
  // time-out; not so after an abort or where an error is being thrown. Threads
  // of one process end their worlds side by side.
  ~NcclWorld();

  // Of all workers; used by one thread. Its splits hold GPU memory until the
  // world ends. After that calls throw.
  std::unique_ptr<Communicator> communicator();

  // For any thread, does not wait. The first cause is kept. Where the workers
  // are threads, each one's world is to be aborted.
  void abort(std::exception_ptr cause) noexcept;
  // Null while all is well.
  std::exception_ptr cause() const;

 private:
  int rank_;
  int size_;
  int errors_;  // under way when it was made
  std::shared_ptr<NcclState> state_;
};

}  // namespace abtrain::comm
