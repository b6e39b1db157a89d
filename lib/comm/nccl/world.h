// The NCCL back end: workers have one GPU each; they are threads of one process, or processes on
// any hosts.
//
// Collectives run on a stream that belongs to the world, after the work that the caller has queued
// on its current stream. Pending::wait() makes the current stream wait for the result without
// blocking the host. CPU tensors are staged through the GPU before the call returns. NCCL computes
// the sums, in the buffer's own dtype and in an order of its choice, so results may differ from
// other back ends' in the last bits.
//
// A thread of the world watches the operations under way. A lost worker, an NCCL error or a
// collective that exceeds its time-out aborts the world: operations that hang on the GPU end; later
// calls, waits and check_peers() throw Error(PeerLost); results that nobody has waited for are
// void. Members' calls are not compared: different calls run into the time-out.
//
// NCCL's calls are not thread-safe, so all are made under one mutex. It is held only briefly,
// because the communicators are non-blocking: NCCL does the work in the background, and the world
// polls until it is done.
//
// If there are several communicators, all members must make their calls on them in the same order.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/share.h"

struct ncclComm;  // NCCL's and CUDA's types are only declared here

namespace abtrain::comm {

// The loaded library's version as NCCL encodes it: 22809 is 2.28.9. 0 if NCCL is not compiled in.
int nccl_version();

// The NCCL version that abtrain was compiled with, and the version of the loaded library, such as
// "2.28.9"; empty if NCCL is not compiled in. `fits`: the loaded library has the same major version
// and no older minor version.
struct NcclVersions {
  std::string compiled;
  std::string loaded;
  bool fits = false;
};
NcclVersions nccl_versions();

// Whether NCCL accepts several workers on one GPU: from 2.30.3 on, if the environment variable
// NCCL_MULTI_RANK_GPU_ENABLE is 1.
bool nccl_shares_gpus();

class NcclWorld : public Failure, public std::enable_shared_from_this<NcclWorld> {
 public:
  // Collective over `size` workers, each with its own GPU. Waits for the others at most
  // `timeout_seconds`, here and in each collective (counted from the moment the GPU reaches it). A
  // world of one does not use NCCL unless `even_alone` is set (to see whether NCCL works).
  // Throws Error(Config) if this build has no NCCL, if the NCCL found does not fit it
  // (nccl_versions()), or if NCCL refuses, for example two workers on one GPU.
  // Releasing the last copy of the result ends all communicators, the youngest first. That is
  // collective, within the time-out, except after an abort or while an error is being thrown.
  // Threads of one process must end their worlds concurrently.
  static std::shared_ptr<NcclWorld> start(
      int rank, int size, at::Device device, double timeout_seconds, const ShareBytes& share,
      bool even_alone = false);
  ~NcclWorld();

  // A communicator of all workers, for use by one thread. Communicators split from it hold GPU
  // memory until the world ends; after that, their calls throw.
  std::unique_ptr<Communicator> communicator();

  // May be called from any thread; does not block. Keeps the first cause. If the workers are
  // threads, abort the world of each thread.
  void abort(std::exception_ptr cause) noexcept;

  // The rest is for the world's communicators.

  // An NCCL communicator of this worker. Lives as long as the world.
  struct Link {
    int rank = 0;
    int size = 1;
    ncclComm* handle = nullptr;
    bool watched = false;  // whether the watching thread may query its errors
  };
  // A collective queued on the stream.
  struct Operation;
  using Id = std::array<std::byte, 128>;  // the id by which all ranks of a world join

  // Collective over `link`. Colors are 0 or more; `key` is the rank in the new group, and `size` is
  // its size. A member that passes kNoColor takes part and gets null.
  Link* split(Link& link, int color, int key, int size);
  static constexpr int kNoColor = -1;

  // Queues a barrier, or a transfer of CUDA tensors that runs after call.ready.
  std::shared_ptr<const Operation> queue(Link& link, Call call);
  // Makes the caller's current stream wait for the operation.
  void order_after(const Operation& operation) const;
  // Blocks the host until the operation is done.
  void wait(const Operation& operation) const;

  at::Device device() const {
    return device_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Throws Error(Config) if the device is not a GPU.
  NcclWorld(int rank, int size, at::Device device, double timeout_seconds);
  static Id make_id();
  // Creates the world's communicator.
  void join(const Id& id);
  // Ends all communicators: together with the other members if `agreed`, otherwise by an abort.
  // Called once.
  void close(bool agreed) noexcept;
  void settle(Lock& lock, Link& link, const std::string& what);
  void check(int result, const std::string& what);
  // Aborts with the error and throws it.
  [[noreturn]] void fail(const auto& error) {
    abort(std::make_exception_ptr(error));
    throw error;
  }
  TimedOut overdue(const std::string& what) const;
  void finalize(Lock& lock, Link& link);
  void watch() noexcept;
  void look();
  void abort_links() noexcept;

  const int rank_;
  const int size_;
  const at::Device device_;
  const double timeout_;
  const c10::Stream stream_;  // runs all collectives
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Link>> links_;  // in order of creation
  std::deque<std::shared_ptr<Operation>> open_;
  std::thread watcher_;  // last: it uses all of the above
};

}  // namespace abtrain::comm
