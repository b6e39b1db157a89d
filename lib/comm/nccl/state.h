// One worker's side of NCCL: its communicators, its stream, the collectives
// under way and the thread that watches over them. Internal to the NCCL back
// end; NCCL's and CUDA's types are only named here.
//
// NCCL's calls are not thread-safe: all are made under one mutex, which is held
// only briefly because the communicators are non-blocking. What NCCL then does
// in the background is polled for.
#pragma once

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

#include "base/error.h"
#include "comm/call.h"
#include "comm/failure.h"

struct ncclComm;

namespace abtrain::comm {

class NcclState : public Failure {
 public:
  // An NCCL communicator of this worker. Lives as long as the state.
  struct Link {
    int rank = 0;
    int size = 1;
    ncclComm* handle = nullptr;
    bool watched = false;  // the watching thread may query its errors
  };
  // A collective queued on the stream.
  struct Operation;
  using Id = std::array<std::byte, 128>;

  // Throws Error(Config) if the device is not a GPU.
  NcclState(at::Device device, double timeout_seconds);
  ~NcclState();

  // An id with which all ranks of a world join.
  static Id make_id();
  // Creates the world's communicator. Collective; must be called first.
  void join(const Id& id, int rank, int size);
  // Null before join().
  Link* world() const {
    return links_.empty() ? nullptr : links_.front().get();
  }
  // Collective over `link`. Colors are 0 or more, keys are ranks in the new
  // group; a member that passes kNoColor takes part and gets null.
  Link* split(Link& link, int color, int key, int size);
  static constexpr int kNoColor = -1;

  // Queues a barrier, or a transfer of CUDA tensors that runs after call.ready.
  std::shared_ptr<const Operation> start(Link& link, Call call);
  // Makes the caller's current stream wait for the operation.
  void order_after(const Operation& operation) const;
  // Blocks the host until the operation is done.
  void wait(const Operation& operation) const;

  void abort(std::exception_ptr cause) noexcept;
  at::Device device() const {
    return device_;
  }

  // Ends all communicators: together with the other members if `agreed`, else
  // by an abort. Called once.
  void close(bool agreed) noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Link& add_link(int rank, int size);
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

  const at::Device device_;
  const double timeout_;
  const c10::Stream stream_;  // of all collectives
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Link>> links_;  // in order of creation
  std::deque<std::shared_ptr<Operation>> open_;
  std::thread watcher_;  // last: it uses all of the above
};

}  // namespace abtrain::comm
