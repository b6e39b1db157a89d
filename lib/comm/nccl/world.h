// Workers that have one GPU each: threads of one process, or processes on any
// hosts.
//
// Collectives run on a stream that belongs to the world, after the work that
// the caller has queued on its current stream; Pending::wait() makes that
// stream wait for the result and does not block the host. CPU tensors are
// staged through the GPU before the call returns. Sums are NCCL's: in the
// buffer's own dtype and in an order that NCCL chooses, so bits may differ from
// those of other back ends.
//
// A thread of the world watches over what is under way. A lost worker, an NCCL
// error or a collective that exceeds its time-out aborts the world: what hangs
// on the GPU ends, later calls, waits and check_peers() throw Error(PeerLost),
// and results that nobody has waited for are void. Members' calls are not
// compared: different calls end in the time-out.
//
// All members must make their calls on several communicators in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/share.h"

namespace abtrain::comm {

class NcclState;

// The loaded library's version as NCCL encodes it: 22809 is 2.28.9. 0 if NCCL
// is not compiled in.
int nccl_version();

// NCCL's version when abtrain was compiled and the version of the library that
// is loaded now, as in "2.28.9"; empty if NCCL is not compiled in. The two must
// agree in all but the last number.
struct NcclVersions {
  std::string compiled;
  std::string loaded;
};
NcclVersions nccl_versions();

class NcclWorld {
 public:
  // Collective over `size` workers, each with a GPU of its own. Waits for the
  // others at most `timeout_seconds`, here and in each collective (counted from
  // the moment the GPU reaches it). A world of one does not need NCCL and does
  // not use it unless `even_alone` asks for it (to see whether it works).
  // Throws Error(Config) if this build has no NCCL, if the NCCL found is not
  // the one it was built for, or if NCCL refuses, for example two workers on
  // one GPU.
  NcclWorld(
      int rank, int size, at::Device device, double timeout_seconds, const ShareBytes& share,
      bool even_alone = false);
  NcclWorld(const NcclWorld&) = delete;
  NcclWorld& operator=(const NcclWorld&) = delete;
  // Ends all its communicators, the youngest first. Collective, within the
  // time-out, except after an abort or while an error is being thrown. Threads
  // of one process must end their worlds concurrently.
  ~NcclWorld();

  // A communicator of all workers; used by one thread. Communicators split from
  // it hold GPU memory until the world ends; after that their calls throw.
  std::unique_ptr<Communicator> communicator();

  // May be called from any thread; does not block. The first cause is kept. If
  // the workers are threads, each one's world must be aborted.
  void abort(std::exception_ptr cause) noexcept;

 private:
  int rank_;
  int size_;
  int errors_;  // uncaught exceptions at construction
  std::shared_ptr<NcclState> state_;
};

}  // namespace abtrain::comm
