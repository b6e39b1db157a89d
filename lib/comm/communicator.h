// Collectives over flat buffers in a group of workers. A worker is a thread or a process.
//
// Buffers are contiguous 1-D tensors on the communicator's device (fp32, fp64, fp16, bf16, int32,
// int64, uint8). Every member makes the same calls in the same order. In a group of one, the result
// is the input.
//
// Sums are accumulated in rank order, in fp32 whatever the buffer's dtype (fp64 for fp64; integers
// modulo 2^bits). A mean divides the sum by n; the result is rounded to the buffer's dtype once. So
// the result is bit-identical on every member and in every back end except NCCL, which has its own
// rules (comm/nccl/world.h).
//
// A call throws Error(PeerLost) when another worker has failed or the time-out has passed. It
// throws Error(Config) when members make different calls or an argument does not fit: a buffer of
// the wrong layout, dtype, device or element count, a mean of integers, or a root that is not a
// member.
//
// Bytes sent per member, as the meter counts them, for a payload of P bytes over n members:
//   all_reduce      2(n-1)/n*P   (a reduce-scatter, then an all-gather)
//   all_gather      (n-1)*P_own  (P_own: the member's own part)
//   reduce_scatter  (n-1)/n*P
//   all_to_all      (n-1)/n*P
//   broadcast       (n-1)*P      (at the root)
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "comm/call.h"

namespace abtrain::comm {

// A collective under way. After wait(), the buffer holds the result (on a GPU: for work queued on
// the current stream from then on); until then the caller must neither read nor write it. The
// destructor waits too, unless an error is being thrown. Move-only.
class Pending {
 public:
  Pending() = default;  // nothing under way
  // The destructor passes `give_up` the error that kept it from completing the wait. Without
  // `give_up`, it does not wait.
  explicit Pending(std::function<void()> wait, std::function<void(std::exception_ptr)> give_up)
      : work_(new Work{std::move(wait), std::move(give_up)}) {}
  void wait();

 private:
  struct Work {
    std::function<void()> wait;
    std::function<void(std::exception_ptr)> give_up;
    int errors = std::uncaught_exceptions();
    ~Work();
  };
  std::unique_ptr<Work> work_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  int rank() const {
    return rank_;
  }
  int size() const {
    return size_;
  }

  // Collective. Members with the same color form a group, in the order of their ranks.
  virtual std::unique_ptr<Communicator> split(int color) = 0;

  // Reduces the members' buffers in place.
  Pending all_reduce(at::Tensor buffer, ReduceOp op, Purpose purpose);
  // `out` receives the members' inputs in rank order: counts[i] elements (the numel of its `in`)
  // from member i. Every member passes the same `counts`.
  Pending all_gather(
      at::Tensor out, at::Tensor in, const std::vector<std::int64_t>& counts, Purpose purpose);
  // The same, for members that all contribute in.numel() elements.
  Pending all_gather(at::Tensor out, at::Tensor in, Purpose purpose) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), in.numel());
    return all_gather(out, in, counts, purpose);
  }
  // Reduces the members' `in` buffers, all of one length, and writes chunk i of the result to
  // member i's `out`. Chunk i holds the elements from numel * i / size() up to, but not including,
  // numel * (i + 1) / size(), both rounded down (comm/traffic.h).
  Pending reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, Purpose purpose);
  // `in` holds counts[i] elements for each member i, in rank order. `out` receives the
  // counts[rank()] elements that each member holds for this member, in rank order. Every member
  // passes the same `counts`.
  Pending all_to_all(
      at::Tensor out, at::Tensor in, const std::vector<std::int64_t>& counts, Purpose purpose);
  Pending broadcast(at::Tensor buffer, int root, Purpose purpose);
  virtual void barrier() = 0;

  // Starts one of the transfers above. The caller has checked the arguments.
  virtual Pending start(Call call) = 0;

  // Throws Error(PeerLost) if another worker has failed. Costs next to nothing.
  virtual void check_peers() = 0;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_;
  int size_;
};

}  // namespace abtrain::comm
