// A collective as its caller requested it, and the checks that every back end
// makes of it. Internal to the back ends.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/stream.h"

namespace abtrain::comm {

// One member's side of a collective.
struct Call {
  enum class Kind {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Barrier,
    Split
  };
  Kind kind = Kind::Barrier;
  at::Tensor out = {};  // the buffer, if there is only one
  at::Tensor in = {};
  ReduceOp op = ReduceOp::Sum;
  int root = 0;
  std::vector<std::int64_t> counts = {};  // all-gather, all-to-all
  int color = 0;                          // split: the group to join
  int key = 0;                            // split: the order in it
  device::Event ready = {};  // after its owner's earlier work
};

// The buffer that has the same length on every member.
inline const at::Tensor& common_buffer(const Call& call) {
  const bool by_input = call.kind == Call::Kind::ReduceScatter ||
      call.kind == Call::Kind::AllToAll;
  return by_input ? call.in : call.out;
}

// "all_reduce of 100 Float on cpu, sum"
std::string describe(const Call& call);

// Base class of the back ends' communicators: checks the arguments, then hands
// the call to start().
class CheckedCommunicator : public Communicator {
 public:
  Pending all_reduce(at::Tensor buffer, ReduceOp op, Purpose purpose) final;
  Pending all_gather(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) final;
  Pending reduce_scatter(
      at::Tensor out,
      at::Tensor in,
      ReduceOp op,
      Purpose purpose) final;
  Pending all_to_all(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) final;
  Pending broadcast(at::Tensor buffer, int root, Purpose purpose) final;

 protected:
  virtual Pending start(Call call) = 0;
};

}  // namespace abtrain::comm
